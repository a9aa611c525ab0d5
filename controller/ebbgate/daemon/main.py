# SPDX-License-Identifier: GPL-2.0-only
"""`ebbgated`: its command line; restores what an earlier daemon left behind, then runs.

I/O: the composition root.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType

from ebbgate import __version__
from ebbgate.actuators.restore import log_restored, restore
from ebbgate.actuators.volume_workers import VolumeWorkers
from ebbgate.config.settings import Config, load_config, load_folders
from ebbgate.daemon.daemon import Daemon
from ebbgate.daemon.loop_silence import LoopSilence, measured_loop
from ebbgate.errors import ConfigError, EbbgateError, PermissionDenied, Unavailable
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.log_messages.service import DAEMON_FAILED
from ebbgate.log_messages.volumes import JOURNAL_NOT_UPDATED, LEFT_KNOBS_UNKNOWN
from ebbgate.model.decision import JournalEntry
from ebbgate.model.volume import Mode
from ebbgate.store import state_dirs
from ebbgate.store.access import (
    make_folder,
    make_runtime_folder,
    runtime_folder_refused,
    state_folder_refused,
)
from ebbgate.store.daemon_lock import DaemonLock
from ebbgate.store.journal_writer import JournalWriter
from ebbgate.store.last_written import LastWritten
from ebbgate.store.migrations import NewerSchema
from ebbgate.store.recorder import Recorder
from ebbgate.store.unrestored import SettledEntry, UnrestoredOriginals
from ebbgate.systemd_log import report_failure, set_up_log

_LOG = logging.getLogger("ebbgated")


def main(argv: Sequence[str] | None = None, sysfs: Sysfs | None = None) -> int:
    """Run ebbgated; return its exit code (errors.py). `sysfs`: the default is this machine's."""
    options = option_parser().parse_args(argv)
    set_up_log("ebbgated", logging.DEBUG if options.verbose else logging.INFO, logging.Formatter)
    # An edge must not wait for another thread's turn at the interpreter (5 ms by default). Each
    # read and write of a file ends the loop's own turn, and a gate that closes takes several.
    sys.setswitchinterval(0.0005)
    try:
        # A test's tree of files needs no rights.
        if sysfs is None and os.geteuid() != 0:
            raise PermissionDenied("ebbgated needs root", "start it with systemd or sudo")
        return _run(options, sysfs or Sysfs())
    except EbbgateError as error:
        report_failure("ebbgated", DAEMON_FAILED, error)
        return error.exit_code


def option_parser() -> argparse.ArgumentParser:
    """Return the options; the manual page is made from them."""
    parser = argparse.ArgumentParser(prog="ebbgated", description="Tunes bcache and dm-cache.")
    parser.add_argument("--config", type=Path, help="default: /etc/ebbgate/ebbgate.toml")
    parser.add_argument("--state-dir", type=Path, help="default: /var/lib/ebbgate")
    parser.add_argument("--runtime-dir", type=Path, help="default: /run/ebbgate")
    parser.add_argument("--probe", type=Path, help="the ebbgate-probe program")
    parser.add_argument("--policy-dir", type=Path, help="default: /etc/ebbgate/policies.d")
    modes = [str(mode) for mode in Mode]
    parser.add_argument("--mode", choices=modes, help="of volumes for which none was chosen")
    parser.add_argument("--tick-ms", type=int, help="default: 250")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--version", action="version", version=f"ebbgated {__version__}")
    return parser


def _run(options: argparse.Namespace, sysfs: Sysfs) -> int:
    config, wrong = _settings(options)
    _make_folders(config)
    boot_id = boot_id_of(Path("/proc"))
    with DaemonLock(config.lock_path):
        last_written = _last_written(config)
        unremoved, left = restore_leftovers(config, sysfs, boot_id, last_written)
        if wrong is not None:
            raise wrong
        _remember_state_dir(config)
        journal = JournalWriter(config.journal_path, last_written, unremoved, left)
        recorder = Recorder(config.history_path, config.history)
        try:
            silence = LoopSilence()
            with asyncio.Runner(loop_factory=lambda: measured_loop(silence)) as runner:
                daemon = Daemon(config, sysfs, recorder, journal, boot_id, silence)
                _handle_signals(daemon, runner.get_loop())
                runner.run(daemon.run())
        finally:
            recorder.stop()
            journal.stop()
    return 0


def _settings(options: argparse.Namespace) -> tuple[Config, ConfigError | None]:
    """Return the settings; those with an error have only the folders, for a restore."""
    folders = {"state_dir": options.state_dir, "runtime_dir": options.runtime_dir}
    try:
        config = load_config(
            options.config,
            **folders,
            probe_path=options.probe,
            mode=Mode(options.mode) if options.mode else None,
            tick_ms=options.tick_ms,
        )
    except ConfigError as error:
        return load_folders(options.config, **folders), error
    if options.policy_dir:
        config = replace(config, policy_dir=options.policy_dir)
    return config, None


def _make_folders(config: Config) -> None:
    """Raises Unavailable."""
    try:
        make_folder(config.state_dir)
    except OSError as error:
        raise state_folder_refused(config.state_dir, error) from error
    try:
        make_runtime_folder(config.runtime_dir)
    except OSError as error:
        raise runtime_folder_refused(config.runtime_dir, error) from error


def _handle_signals(daemon: Daemon, loop: asyncio.AbstractEventLoop) -> None:
    """Stop the daemon at SIGTERM and SIGINT, reload it at SIGHUP.

    Handlers of the event loop would end with it, so that another signal during the last flush of
    the history would kill the process.
    """

    def handle(number: int, action: Callable[[], None]) -> None:
        def handler(_number: int, _frame: FrameType | None) -> None:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(action)

        signal.signal(number, handler)

    for number in (signal.SIGTERM, signal.SIGINT):
        handle(number, daemon.stop)
    handle(signal.SIGHUP, daemon.reload)


def boot_id_of(proc: Path) -> str:
    """Return the kernel's random name for this boot."""
    return (proc / "sys/kernel/random/boot_id").read_text().strip()


def _last_written(config: Config) -> LastWritten:
    """Raises Unavailable."""
    try:
        return LastWritten(config.last_written_path)
    except OSError as error:
        path = config.last_written_path
        raise Unavailable(f"{path} cannot be used: {error.strerror}", "remove it") from error


def _remember_state_dir(config: Config) -> None:
    """Raises Unavailable."""
    path = config.state_dirs_path
    try:
        state_dirs.remember(path, config.state_dir)
    except OSError as error:
        raise Unavailable(f"{path} cannot be used: {error.strerror}", "remove it") from error


def restore_leftovers(
    config: Config, sysfs: Sysfs, boot_id: str, last_written: LastWritten
) -> tuple[list[SettledEntry], list[JournalEntry]]:
    """Restore what a killed daemon left in its journal, also in an earlier state folder.

    Returns the entries of this journal that are restored but could not be closed, and those of all
    journals that could not be restored. Raises NewerSchema, after all else.
    """
    own, newer, all_read = config.journal_path, None, True
    unremoved: list[SettledEntry] = []
    left: list[JournalEntry] = []
    for path in (own, *state_dirs.other_journals(config.state_dirs_path, own)):
        try:
            found = _restored_from(path, sysfs, boot_id, last_written, renew=path == own)
        except EbbgateError as error:
            all_read = False
            if path == own and isinstance(error, NewerSchema):
                newer = error
            else:
                _LOG.error(LEFT_KNOBS_UNKNOWN, error.message)
            continue
        left += found.left()
        if path == own:
            unremoved = found.unremoved
            newer = found.error if isinstance(found.error, NewerSchema) else None
    if all_read:
        last_written.keep_only(left)
    if newer is not None:
        raise newer
    return unremoved, left


def _restored_from(
    path: Path, sysfs: Sysfs, boot_id: str, last_written: LastWritten, *, renew: bool
) -> UnrestoredOriginals:
    """Restore what one journal has; `renew` as in `open`. Raises what `open` raises."""
    leftovers = UnrestoredOriginals.open(path, last_written, renew=renew)
    try:
        workers = VolumeWorkers(sysfs.dm.forget_handle)
        log_restored(restore(leftovers, sysfs, boot_id, workers=workers))
    finally:
        leftovers.close()
    if leftovers.warning:
        _LOG.error(JOURNAL_NOT_UPDATED, leftovers.warning)
    return leftovers


if __name__ == "__main__":
    sys.exit(main())
