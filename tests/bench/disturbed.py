# SPDX-License-Identifier: GPL-2.0-only
"""Lives of the actuators on a real volume of the lab, disturbed by guest/stop_driver.py.

I/O: a guest, through a Session.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ebbgate.model.volume import Kind
from tests.bench.context import Context
from tests.bench.product import PYTHON, REPO, stage_in_guest
from tests.lab.bcache_stack import BcacheStack
from tests.lab.dm_stack import DmCacheStack
from tests.lab.guest import Guest
from tests.lab.session import Session

FILES, BCACHE, DM_CACHE = "files", "bcache", "dm-cache"
Found = dict[str, float]
_DRIVER = Path(__file__).parent / "guest" / "stop_driver.py"
_STATE = "/run/ebbgate-stop"
_PATIENCE_S = 900
_CACHE_BYTES = 256 << 20


def by_variant(
    context: Context,
    on_files: Callable[[Context], Iterator[Found]],
    in_lab: Callable[[Context, Session, Kind], Iterator[Found]],
) -> dict[str, list[Found]]:
    """Run the variant, or all of them."""
    wanted = [v for v in (FILES, BCACHE, DM_CACHE) if context.variant in ("", v)]
    runs: dict[str, list[Found]] = {variant: [] for variant in wanted}
    if FILES in wanted:
        runs[FILES] = list(on_files(context))
    real = [kind for kind in (Kind.BCACHE, Kind.DM_CACHE) if str(kind) in wanted]
    if real:
        with Guest() as guest:
            for kind in real:
                runs[str(kind)] = list(in_lab(context, guest, kind))
    return runs


def driven(
    guest: Session, kind: Kind, what: str, count: int, seed: int
) -> Iterator[dict[str, Any]]:
    """What the driver says of each disturbance. The stack compares every knob in the end."""
    if kind is Kind.BCACHE:
        with BcacheStack(guest) as bcache:
            yield from _said(guest, [what, bcache.volume, str(count), str(seed), _STATE])
    else:
        with DmCacheStack(guest, cache_bytes=_CACHE_BYTES) as dm_cache:
            yield from _said(guest, [what, dm_cache.name, str(count), str(seed), _STATE])


def _said(guest: Session, words: list[str]) -> Iterator[dict[str, Any]]:
    environment = {"PYTHONPATH": f"{stage_in_guest(guest)}:{REPO}"}
    guest.run(["rm", "-rf", _STATE])
    done = guest.run([PYTHON, _DRIVER, *words], env=environment, timeout_s=_PATIENCE_S)
    yield from map(json.loads, done.check().stdout.splitlines())
