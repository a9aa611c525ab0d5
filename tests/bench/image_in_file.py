# SPDX-License-Identifier: GPL-2.0-only
"""image-in-file: a PostgreSQL in a disk image on the volume, whose files only its guest can name.

The image is a loop device of the same machine, so that the truth is known: what its own kernel says
of the tables, through all layers. It is compared with what the agent says in the guest, and
ebbgate makes of it from outside. What promote_hot chooses of either layout is compared, from misses
while clients read four of the tables.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from ebbgate.layout.chunk_owners import ChunkOwners
from ebbgate.model.heat import CHUNK_BYTES, ChunkMisses, HeatPeriod, VolumeLayout
from ebbgate.model.owners import NO_OWNERS, owners_of
from ebbgate.policy.strategies.promote_choice import LIST_MAX, Earlier, Room, Worth, choose
from ebbgate.policy.strategies.promote_hot import PromoteState
from ebbgate.policy.strategies.promote_score import ASYNC_WEIGHT, Groups, add_window, with_layout
from ebbgate.policy.strategies.promote_stop import PromoteParams
from ebbgate.units import NS_PER_S
from ebbgate.warm.plan import Piece
from ebbgate.warm.target import Target
from tests.bench.context import Context, Scenario
from tests.bench.guest.file_mover import Chunk, chunks_of
from tests.bench.postgres_volume import (
    CLIENTS,
    DATA,
    FILESYSTEMS,
    FOLDER,
    GUEST_SCRIPTS,
    KINDS,
    MEMORY_MIB,
    SCRIPT_ENV,
    TABLES,
    TRACES,
    Stack,
    cache_options,
    copy_cluster,
    devices,
    full_speed,
    past_cache,
    stack_of,
)
from tests.bench.product import PYTHON, SITE, stage_in_guest
from tests.bench.report import Report, medians
from tests.lab.guest import Guest
from tests.lab.postgres import PostgresServer

HOST_FOLDER = "/run/images"
IMAGE = f"{HOST_FOLDER}/disk.raw"
IMAGE_MIB = 1600
HOT = 4
WINDOWS, WINDOW_S = 3, 15
EBBGATE = f"PYTHONPATH={SITE} {PYTHON} -m ebbgate"


@contextmanager
def image(guest: Guest, stack: Stack) -> Iterator[str]:
    """Mount a disk image with the cluster, which lies on the volume; yield its loop device."""
    with ExitStack() as undo:
        with full_speed(guest), past_cache(stack):
            loop = _made(guest, stack, undo)
            with mounted(guest, loop, FOLDER):
                # With the file system its pages go out of the memory.
                copy_cluster(guest)
        undo.enter_context(mounted(guest, loop, FOLDER))
        yield loop.rpartition("/")[2]


def _made(guest: Guest, stack: Stack, undo: ExitStack) -> str:
    """Make an empty image with a file system; return its loop device."""
    guest.check(f"modprobe loop; {FILESYSTEMS['ext4']} {stack.device}", timeout_s=120)
    undo.enter_context(mounted(guest, stack.device, HOST_FOLDER))
    guest.check(f"fallocate -l {IMAGE_MIB}M {IMAGE}", timeout_s=120)
    loop = guest.check(f"losetup --find --show --direct-io=on {IMAGE}").strip()
    undo.callback(guest.check, f"losetup -d {loop}")
    guest.check(f"{FILESYSTEMS['ext4']} {loop}", timeout_s=120)
    return loop


@contextmanager
def mounted(guest: Guest, device: str, folder: str) -> Iterator[None]:
    """Have a file system mounted."""
    guest.check(f"mkdir -p {folder} && mount {device} {folder}")
    try:
        yield
    finally:
        guest.check(["umount", folder], timeout_s=120)


Window = Mapping[int, tuple[int, int]]
"""What the cache missed in `WINDOW_S`: reads and writes by chunk of the volume."""


def misses_of(guest: Guest, stack: Stack) -> Window:
    """Return what the cache misses in a window that begins now."""
    argv = [PYTHON, str(GUEST_SCRIPTS / "misses.py"), *cache_options(stack)]
    counter = guest.spawn([*argv, "--seconds", str(WINDOW_S)], env=SCRIPT_ENV)
    found = json.loads(counter.wait(WINDOW_S + 60).check().stdout)
    guest.check(["rmdir", f"{TRACES}/misses-{counter.pid}"])
    return {int(chunk): (reads, writes) for chunk, (reads, writes) in found.items()}


def chunks_by_file(shown: str) -> dict[str, list[Chunk]]:
    """Return the chunks of each file, of what `layout show --json` prints."""
    return {file["path"]: chunks_of(_target(file)) for file in json.loads(shown)["files"]}


def _target(file: Mapping[str, Any]) -> Target:
    pieces = tuple(
        Piece(each["offset_bytes"], each["volume_bytes"], each["length_bytes"])
        for each in file["ranges"]
    )
    return Target(-1, (0, 0), pieces, {})


def layout_of(files: Mapping[str, Sequence[Chunk]]) -> VolumeLayout:
    """Return who owns the chunks of a volume."""
    owners = ChunkOwners()
    for group, chunks in enumerate(files.values()):
        for chunk in chunks:
            owners.add(group, chunk.number * CHUNK_BYTES, chunk.length_bytes)
    return VolumeLayout(0, tuple(files), owners.runs()[0])


def chosen(windows: Sequence[Window], files: Mapping[str, Sequence[Chunk]]) -> set[int]:
    """Return the chunks that promote_hot lists after these windows, with room for all of them."""
    layout, state, params = layout_of(files), PromoteState(), PromoteParams()
    scores = state.scores
    for number, window in enumerate(windows, 1):
        chunks = tuple(
            ChunkMisses(chunk, sync_reads=reads, writes=writes)
            for chunk, (reads, writes) in window.items()
        )
        ended_ns = number * WINDOW_S * NS_PER_S
        period = HeatPeriod(ended_ns - WINDOW_S * NS_PER_S, ended_ns, chunks)
        scores = add_window(scores, period, params.period_ns // 2, ASYNC_WEIGHT)
    scores = with_layout(scores, layout)
    worth = Worth(replace(state, scores=scores).costs(params), ratio=1.0)
    groups = Groups(scores, owners_of(NO_OWNERS, layout))
    return {*choose(scores.ended_ns, groups, worth, Room(LIST_MAX, 1.0), Earlier()).listed}


def figures(
    windows: Sequence[Window],
    agent: Mapping[str, Sequence[Chunk]],
    truth: Mapping[str, Sequence[Chunk]],
) -> dict[str, float]:
    """Compare what is chosen by the agent's layout with what is by the true one.

    `missed`: the share of all misses that lie in what was chosen.
    """
    ours, theirs = chosen(windows, agent), chosen(windows, truth)
    of_chunk = Counter[int]()
    for window in windows:
        of_chunk.update({chunk: sum(pair) for chunk, pair in window.items()})
    within = sum(count for chunk, count in of_chunk.items() if chunk in ours)
    return {
        "chunks": len(ours),
        "different": len(ours ^ theirs),
        "missed": within / max(1, of_chunk.total()),
    }


def measure(guest: Guest, kind: str, seed: int) -> dict[str, float]:
    """Find the hot tables in the image."""
    hot = random.Random(seed).sample(TABLES.names, HOT)
    stage_in_guest(guest)
    with (
        stack_of(guest, kind) as stack,
        image(guest, stack) as disk,
        PostgresServer(guest, DATA, memory_mib=MEMORY_MIB) as server,
    ):
        stack.expect_changed("writeback_rate")
        files = " ".join(server.files(TABLES.names))
        seen = f"{EBBGATE} layout agent | {PYTHON} - {files}"
        agent = f"{EBBGATE} layout show --json --image raw {IMAGE} --agent - --disk {disk}"
        by_agent = chunks_by_file(guest.check(f"{seen} | {agent}", timeout_s=180))
        truth = chunks_by_file(guest.check(f"{EBBGATE} layout show --json {files}", timeout_s=180))
        scripts = [TABLES.select(name) for name in hot]
        seconds = WINDOWS * (WINDOW_S + 10)
        load = server.load(scripts, clients=CLIENTS, seconds=seconds, seed=seed)
        windows = [misses_of(guest, stack) for _ in range(WINDOWS)]
        load.wait(120).check()
        return figures(windows, by_agent, truth)


def run(context: Context) -> Report:
    """Run the variant."""
    kind = context.variant or KINDS[0]
    with Guest(devices()) as guest:
        runs = context.interleaved(
            ("ebbgate",), lambda _arm, n: measure(guest, kind, context.seed + n)
        )
    ratios = medians(runs["ebbgate"])
    goals = {"chunks": ">= 192", "different": "== 0", "missed": ">= 0.95"}
    return Report("image-in-file", runs, ratios, goals)


SCENARIO = Scenario(
    "image-in-file",
    "the hot tables of a PostgreSQL in a disk image are found from outside, by what its agent says",
    3,
    run,
    KINDS,
)
