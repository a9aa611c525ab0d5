# SPDX-License-Identifier: GPL-2.0-only
"""Settings of all tiers: hypothesis without deadlines, since a slow machine is no failure."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile(
    "default", deadline=None, derandomize=True, database=None, max_examples=60
)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_configure(config: object) -> None:
    """Register markers; `--strict-markers` refuses others."""
    add = config.addinivalue_line  # type: ignore[attr-defined]
    add("markers", "full: a long variant, run by `make test-full` only")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine on an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that everybody may look into, as /sys is.

    `tmp_path` is not: each pytest that starts meanwhile closes the folder above it to other users.
    """
    with tempfile.TemporaryDirectory(prefix="ebbgate-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def pytest_collection_finish() -> None:
    """Exclude collected tests, which live to the end, from garbage collection."""
    gc.collect()
    gc.freeze()
