# SPDX-License-Identifier: GPL-2.0-only
"""What was seen at a path is opened, whatever a user has put there meanwhile."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from ebbgate.errors import Unavailable, UsageError
from ebbgate.layout import chain, images
from ebbgate.layout.locate import Locator
from ebbgate.layout.path_handle import path_handle, reopened
from tests.fake_sysfs import fake_bcache
from tests.layout_fixture import LayoutMachine


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """Stands in for a device that an open starts: whether somebody has opened it can be told."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def is_open(pipe: Path) -> bool:
    try:
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        assert error.errno == errno.ENXIO
        return False
    return True


@contextmanager
def unopened(pipe: Path) -> Iterator[None]:
    """Nobody opens the pipe meanwhile: a writer waits for that."""
    opened = Event()

    def write() -> None:
        os.close(os.open(pipe, os.O_WRONLY))
        opened.set()

    writer = Thread(target=write, daemon=True)
    writer.start()
    yield
    assert not opened.wait(0.2)
    os.close(os.open(pipe, os.O_RDONLY))
    writer.join()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LayoutMachine:
    made = LayoutMachine(fake_bcache(tmp_path / "sys"), tmp_path, monkeypatch)
    made.holds_files("bcache0")
    return made


def exchanging(pipe: Path) -> Callable[[Path], AbstractContextManager[int]]:
    """path_handle(), right after which a link to the pipe takes the place of the file."""

    @contextmanager
    def exchanged(path: Path) -> Iterator[int]:
        with path_handle(path) as handle:
            if stat.S_ISREG(os.fstat(handle).st_mode):
                path.unlink()
                path.symlink_to(pipe)
            yield handle

    return exchanged


def test_a_look_opens_no_pipe(pipe: Path) -> None:
    with path_handle(pipe):
        assert not is_open(pipe)
    with path_handle(pipe) as handle:
        opened = reopened(handle)
        assert is_open(pipe)
    os.close(opened)


def test_a_file_that_a_link_replaces_is_still_the_file(
    machine: LayoutMachine, pipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look is at the file, the second one, which compares, at the pipe."""
    path = machine.file([(0, 0, 4096)])
    monkeypatch.setattr(chain, "path_handle", exchanging(pipe))
    with unopened(pipe), pytest.raises(UsageError, match="is neither a file nor a block device"):
        Locator(machine.fake.sysfs, machine.mounts).locate(path)
    assert path.is_symlink()


def test_an_image_that_is_a_pipe_is_not_opened(pipe: Path, tmp_path: Path) -> None:
    link = tmp_path / "image"
    link.symlink_to(pipe)
    with unopened(pipe), pytest.raises(Unavailable, match="is no regular file"):
        images.looks_like(link)
