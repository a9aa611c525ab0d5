# SPDX-License-Identifier: GPL-2.0-only
"""One guest for all lab tests, and the rules for tests that cannot have one.

I/O: boots a guest, or attaches to the one that EBBGATE_LAB_GUEST names (tests.lab up).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Iterator
from typing import Any, NoReturn

import pytest

from tests.bench.product import STATE_DIR
from tests.lab import guest_server, kernel_matrix, kernel_results, snapshot
from tests.lab.dm_stack import DmCacheStack
from tests.lab.errors import EXIT_LOST_GUEST, LostGuest, NoLab, UncleanStack
from tests.lab.guest import Guest
from tests.lab.script_fixture import ScriptHarness
from tests.lab.session import Session

# A boot under emulation on a busy machine takes longer than a unit test ever may.
_TIMEOUT_S = 600
_EXIT_LINE_CHARS = 500
_LOST = pytest.StashKey[bool]()
_RESULTS = pytest.StashKey[kernel_results.Results]()
_NOTED = pytest.StashKey[bool]()
_COMMIT = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker of tests that run on every kernel (kernel_matrix.on_kernels)."""
    config.addinivalue_line("markers", "kernels(suite, *quick): runs on every kernel")
    config.stash[_RESULTS] = kernel_results.load(kernel_results.LAST)
    config.stash[_COMMIT] = kernel_results.commit()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test on each of its kernels."""
    if marker := metafunc.definition.get_closest_marker("kernels"):
        values = kernel_matrix.parameters(marker)
        metafunc.parametrize("guest", values, indirect=True, scope="session")


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """Give every lab test time, unless it says itself how much it needs; boot each kernel once."""
    for item in items:
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(_TIMEOUT_S))
    before = list(items)
    yield
    kernel_matrix.put_in_order(items, before)


def pytest_exception_interact(node: pytest.Item, call: pytest.CallInfo[object]) -> None:
    """A lost guest ends the run, with its own exit code: it proves nothing about the product.

    Earlier failures are still reported; the reason of the loss comes last.
    """
    if call.excinfo is not None and isinstance(call.excinfo.value, LostGuest):
        how = str(call.excinfo.value).partition("\n")[0][:_EXIT_LINE_CHARS]
        node.session.shouldstop = f"guest lost in {node.nodeid}: {how}"
        node.config.stash[_LOST] = True


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what was proved on which kernel; give the exit code of a lost guest."""
    if session.config.stash.get(_NOTED, False):
        kernel_results.save(session.config.stash[_RESULTS], kernel_results.LAST)
    if session.config.stash.get(_LOST, False):
        session.exitstatus = EXIT_LOST_GUEST


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """With a failure, show what the guest was doing: it will not be there to be asked."""
    outcome = yield
    report: pytest.TestReport = outcome.get_result()
    session = getattr(item, "funcargs", {}).get("guest")
    if report.failed and session is not None:
        report.sections.append(("the guest", snapshot.of(session)))
    marker, found = item.get_closest_marker("kernels"), kernel_matrix.outcome(report)
    if isinstance(session, Guest) and marker is not None and found is not None:
        item.config.stash[_NOTED] = True
        test = item.name.replace(session.release, "*")
        run = kernel_results.Run(session.release, session.kernel.abi, item.config.stash[_COMMIT])
        kernel_results.note(item.config.stash[_RESULTS], run, marker.args[0], test, found)


@pytest.fixture(scope="session")
def guest(request: pytest.FixtureRequest) -> Iterator[Session]:
    """A running guest with the default devices; shared, so leave it as it was."""
    if name := os.environ.get("EBBGATE_LAB_GUEST"):
        with contextlib.closing(guest_server.attach(name)) as session:
            yield session
        return
    try:
        with Guest(release=getattr(request, "param", None) or "") as session:
            yield session
    except NoLab as reason:
        without_lab(reason)


@pytest.fixture(scope="module")
def shared_stack(guest: Session) -> Iterator[DmCacheStack]:
    """One volume for the tests of a file: making it takes longer than many of them."""
    with DmCacheStack(guest) as made:
        yield made


@pytest.fixture
def stack(guest: Session, shared_stack: DmCacheStack) -> Iterator[DmCacheStack]:
    """The shared volume without a history, compared with its originals after each test."""
    guest.run(["rm", "-rf", STATE_DIR])
    yield shared_stack
    UncleanStack.raise_if(shared_stack.findings(), None)


@pytest.fixture
def harness(guest: Session) -> Iterator[ScriptHarness]:
    """The guest with nothing on its disks, ready for the set-up scripts; bare again afterwards."""
    made = ScriptHarness(guest)
    made.prepare()
    try:
        yield made
    finally:
        made.clear()


@pytest.fixture(scope="module")
def counting_guest() -> Iterator[Session]:
    """A guest that counts instructions instead of time (Guest, icount), without disks.

    Not for longer than a module: its clock never rests, so it takes a CPU of the host.
    """
    try:
        with Guest([], icount=True) as session:
            yield session
    except NoLab as reason:
        without_lab(reason)


def without_lab(reason: NoLab) -> NoReturn:
    """Skip, saying why in one line; with EBBGATE_REQUIRE_LAB=1 that is a failure."""
    if os.environ.get("EBBGATE_REQUIRE_LAB") == "1":
        pytest.fail(str(reason), pytrace=False)
    pytest.skip(str(reason))
