# SPDX-License-Identifier: GPL-2.0-only
"""The command line and the loop of a volume, each on a fake machine."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from ebbgate.cli import main
from ebbgate.cli.context import Context
from ebbgate.model.decision import JournalEntry
from ebbgate.model.volume import Mode
from ebbgate.store.daemon_lock import DaemonLock
from ebbgate.store.db import Store
from ebbgate.store.journal import Journal
from tests import web_history as web_made
from tests.background_workers import ended_background_workers
from tests.control_harness import AcceptedRequests, Decide, Outcome, answering
from tests.fake_sysfs import FakeSysfs, fake_bcache
from tests.intent_fixture import IntentHarness
from tests.unit.web import web_fixture
from tests.volume_loop_fixture import DEADLINE_S, LoopHarness
from tests.without_rights import NOBODY, without_rights

BOOT_ID = "this boot"
NOW_NS = 1_700_000_000_000_000_000


@dataclass(frozen=True, slots=True)
class Result:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """What `--json` printed."""
        return json.loads(self.out)


class Cli:
    """Runs commands on a fake machine, as root unless said otherwise."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.fake: FakeSysfs = fake_bcache(folder / "sys")
        self.state_dir = folder / "state"
        self.state_dir.mkdir()
        self.runtime_dir = folder / "run"
        self.runtime_dir.mkdir()
        self.proc = folder / "proc"
        (self.proc / "sys/kernel/random").mkdir(parents=True)
        (self.proc / "sys/kernel/random/boot_id").write_text(f"{BOOT_ID}\n")
        self.euid = 0
        self.timeout_s = 2.0
        self.now_ns = NOW_NS
        self._accepted = AcceptedRequests()
        self._capture = capture

    @property
    def history(self) -> Path:
        return self.state_dir / "history.db"

    def __call__(self, *words: str) -> Result:
        context = Context(
            sysfs=self.fake.sysfs,
            proc=self.proc,
            state_dir_option=self.state_dir,
            runtime_dir_option=self.runtime_dir,
            answer_timeout_s=self.timeout_s,
            wall_ns=lambda: self.now_ns,
            euid=lambda: self.euid,
        )
        self._capture.readouterr()
        folders = ["--state-dir", str(self.state_dir), "--runtime-dir", str(self.runtime_dir)]
        code = main([*folders, *words], context)
        out, err = self._capture.readouterr()
        return Result(code, out, err)

    def as_nobody(self, *words: str) -> Result:
        """Run a command as a user without rights, after once as root.

        The first run imports what is imported late: others may not be allowed to read the code.
        """
        self(*words)
        self.euid = NOBODY
        return Result(**without_rights(lambda: asdict(self(*words))))

    @property
    def journal_path(self) -> Path:
        return self.state_dir / "journal.db"

    def journal(self, *entries: JournalEntry) -> list[str]:
        """Add entries to the journal, as a daemon does; the knobs of all that are open."""
        with closing(Journal.open(self.journal_path)) as journal:
            for entry in entries:
                journal.put(entry)
            return [entry.knob for entry in journal.entries()]

    @contextmanager
    def daemon(self, *, answers: Outcome | Decide | None = None) -> Iterator[Store]:
        """A daemon that accepts every request. `answers`: its outcome, or what decides; without it
        no request ever gets one.
        """
        store = Store.open(self.history)
        decide = answers if callable(answers) else lambda _: answers
        with (
            DaemonLock(self.runtime_dir / "ebbgated.lock"),
            closing(store),
            answering(self.runtime_dir / "control.sock", decide) as self._accepted,
        ):
            yield store

    def intents(self) -> list[dict[str, Any]]:
        """Every request that was accepted by the last daemon."""
        return [asdict(each) for each in self._accepted.requests]


@pytest.fixture(autouse=True)
def background_workers_end() -> Iterator[None]:
    """No test leaves the threads of its background workers behind."""
    with ended_background_workers():
        yield


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    for name in ("EBBGATE_STATE_DIR", "EBBGATE_RUNTIME_DIR", "EBBGATE_PROBE", "SUDO_USER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    return Cli(tmp_path, capsys)


@pytest.fixture
def open_cli(cli: Cli, open_folder: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Another machine, into whose folders everybody may look."""
    return Cli(open_folder, capsys)


@pytest.fixture(scope="session")
def web_history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with half an hour of three volumes up to `web_fixture.NOW_S`; not to be written."""
    folder = tmp_path_factory.mktemp("web")
    filler = web_made.fill(folder, 3, 0.5, web_fixture.NOW_S)
    filler.store.close()
    return folder


@pytest.fixture(scope="session")
def still(web_history: Path) -> web_fixture.WebHarness:
    """ebbgate-web over that history, for tests that write nothing."""
    return web_fixture.WebHarness(web_history)


@pytest.fixture
def web(web_history: Path, tmp_path: Path) -> web_fixture.WebHarness:
    """ebbgate-web over a history of its own."""
    shutil.copy(web_history / "history.db", tmp_path)
    return web_fixture.WebHarness(tmp_path)


@pytest.fixture
def make_loop(tmp_path: Path) -> Iterator[Callable[[Mode], LoopHarness]]:
    """Builds the loop of a volume in a mode."""
    made: list[LoopHarness] = []

    def build(mode: Mode) -> LoopHarness:
        made.append(LoopHarness(tmp_path, mode))
        return made[-1]

    yield build
    for harness in made:
        assert harness.loop.worker.stop(DEADLINE_S)


@pytest.fixture
def enforced(make_loop: Callable[[Mode], LoopHarness]) -> LoopHarness:
    """In enforce, with dirty data and users: the gate is closed."""
    harness = make_loop(Mode.ENFORCE)
    harness.tick()
    return harness


@pytest.fixture
def intents(tmp_path: Path, make_loop: Callable[[Mode], LoopHarness]) -> Iterator[IntentHarness]:
    harness = make_loop(Mode.ADVISE)
    harness.tick()
    with closing(IntentHarness(tmp_path, harness)) as made:
        yield made


@pytest.fixture
def enforced_intents(tmp_path: Path, enforced: LoopHarness) -> Iterator[IntentHarness]:
    with closing(IntentHarness(tmp_path, enforced)) as made:
        yield made
