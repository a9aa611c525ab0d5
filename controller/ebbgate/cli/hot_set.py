# SPDX-License-Identifier: GPL-2.0-only
"""`warm --save` and `warm --restore`. I/O: the control socket; files of hot sets (`hot_file`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from ebbgate.cli import format
from ebbgate.cli.context import Command, Context, Document
from ebbgate.cli.hot_file import SavedHotSet, load, save
from ebbgate.cli.intents import answered, named
from ebbgate.errors import Unavailable, UsageError
from ebbgate.model.hot_set import HotSet, check_ranges, ranges_from_text, ranges_to_text
from ebbgate.model.override import IntentKind
from ebbgate.model.volume import Volume
from ebbgate.probes.topology import discover

_HINT: Final = "for example ebbgate warm --save FILE bcache0"
_FILE: Final = click.Path(path_type=Path, readable=False)
_OPTIONS: Final = (
    click.option(
        "--save",
        type=_FILE,
        metavar="FILE",
        help="Write which parts of a volume (PATH names it) are hot now to this new file.",
    ),
    click.option("--force", is_flag=True, help="--save replaces FILE if it exists."),
    click.option(
        "--restore",
        type=_FILE,
        metavar="FILE",
        help="Warm what is in this file, hottest first, up to nine tenths of the cache.",
    ),
    click.option(
        "--volume", metavar="VOLUME", help="--restore warms this volume instead of the saved one."
    ),
)


@dataclass(frozen=True, slots=True)
class HotSetFiles:
    """What the command line says of files of hot sets."""

    save: Path | None
    force: bool
    restore: Path | None
    volume: str | None

    def check(self) -> None:
        """Raises UsageError for words that do not go together."""
        if self.save and self.restore:
            raise UsageError("--save and --restore do not go together", _HINT)
        if self.force and not self.save:
            raise UsageError("--force is for --save", _HINT)
        if self.volume is not None and not self.restore:
            raise UsageError("--volume is for --restore", "for a part of one: --range")


def hot_set_options(command: Command) -> Command:
    """Add the options whose values `HotSetFiles` takes."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def save_hot_set(context: Context, asked: HotSetFiles, volumes: Sequence[str]) -> Document:
    """Write which parts of the one volume named are hot; return what the file has."""
    assert asked.save is not None
    # Of a path that cannot be looked at `save` names the error.
    with suppress(OSError):
        if asked.save.exists() and not asked.force:
            raise UsageError(f"{asked.save} exists", "to replace it: --force")
    if len(volumes) > 1:
        raise UsageError("--save takes one volume", _HINT)
    name = volumes[0] if volumes else _only_volume(context)
    _, answer = answered(context, IntentKind.HOT, named(context, name), {})
    found = _hot_set(answer.data, context.wall_ns())
    save(asked.save, found, force=asked.force)
    return {
        "volume": found.volume,
        "file": str(asked.save),
        "ranges": len(found.hot.ranges),
        "bytes": found.hot.total_bytes,
        "observed_ns": found.hot.observed_ns,
        "outcome": f"{answer.text}; saved in {asked.save}",
    }


def _only_volume(context: Context) -> str:
    titles = [volume.title for volume in discover(context.sysfs) if volume.cached]
    if len(titles) != 1:
        raise UsageError(f"which volume? {', '.join(titles) or format.NO_VOLUME}", _HINT)
    return titles[0]


def _hot_set(data: Mapping[str, Any], wall_ns: int) -> SavedHotSet:
    """Read the daemon's answer. Raises Unavailable."""
    try:
        ranges = ranges_from_text(str(data["ranges"]))
        hot = HotSet(int(data["chunk_bytes"]), ranges, int(data["observed_ns"]))
        check_ranges(hot.ranges, hot.chunk_bytes)
        name, uuid, size = str(data["volume"]), str(data["uuid"]), int(data["size_bytes"])
    except (KeyError, TypeError, ValueError) as error:
        raise Unavailable(
            "ebbgated sent no hot set", "use command line and daemon of the same release"
        ) from error
    return SavedHotSet(name, uuid, size, wall_ns, hot)


def restore_request(
    context: Context, asked: HotSetFiles
) -> tuple[Volume | str | None, dict[str, Any]]:
    """Return the request that warms what is in a file."""
    assert asked.restore is not None
    found = load(asked.restore)
    args = {"ranges": ranges_to_text(found.hot.ranges), "chunk_bytes": found.hot.chunk_bytes}
    if asked.volume is None and found.uuid:
        return None, {**args, "uuid": found.uuid}
    return named(context, found.volume if asked.volume is None else asked.volume), args
