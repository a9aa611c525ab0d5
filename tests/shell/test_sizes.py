# SPDX-License-Identifier: GPL-2.0-only
"""The rules for sizes in lvm-scripts/README.md."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.shell.machines import PLAIN, SSD_UNUSED
from tests.shell.recorded import GIB, REPO, Machine, refused

KIB, MIB = 1 << 10, 1 << 20


def answer(line: str, first_path: Path | None = None) -> str:
    """Return the output of a shell line that uses functions of lib.sh."""
    script = f". {REPO}/lvm-scripts/lib.sh; EXTENT_BYTES={4 * MIB} CHUNKS_MAX=1000000; {line}"
    path = os.environ["PATH"] if first_path is None else f"{first_path}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", script],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    ).stdout.strip()


@pytest.mark.parametrize("awk", ["awk", "mawk"])
@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("0", 0),
        ("512", 512),
        ("63.9M", 67_004_006),
        ("1.9G", 2_040_109_465),
        ("150.0G", 150 * GIB),
        ("2.3T", 2_528_876_743_884),
    ],
)
def test_what_the_kernel_prints_is_read_by_every_awk(
    text: str, size_bytes: int, awk: str, tmp_path: Path
) -> None:
    """The mawk of a fresh Debian prints no whole number above 2 GiB."""
    found = shutil.which(awk)
    assert found, f"this test needs {awk}"
    (tmp_path / "awk").symlink_to(found)
    assert answer(f"bcache_bytes {text}", tmp_path) == str(size_bytes)


@pytest.mark.parametrize(
    ("cache_gib", "chunk_kib"),
    [(1, 64), (61, 64), (62, 128), (122, 128), (244, 256), (488, 512), (976, 1024), (1945, 2048)],
)
def test_chunks_grow_until_there_are_at_most_a_million(cache_gib: int, chunk_kib: int) -> None:
    assert answer(f"chunk_bytes {cache_gib * GIB}") == str(chunk_kib * KIB)
    assert cache_gib * GIB // (chunk_kib * KIB) <= 1_000_000


@pytest.mark.parametrize(
    ("chunks", "metadata_mib"), [(1, 8), (95_000, 8), (100_000, 12), (1_000_000, 48)]
)
def test_metadata_takes_4_mib_and_44_bytes_per_chunk_in_whole_extents(
    chunks: int, metadata_mib: int
) -> None:
    assert answer(f"metadata_bytes {chunks * 64 * KIB} {64 * KIB}") == str(metadata_mib * MIB)


@pytest.mark.parametrize(
    ("device_bytes", "erase_bytes", "bucket_bytes"),
    [
        (100 * GIB, 0, 512 * KIB),
        (100 * GIB, 512, 512 * KIB),
        (100 * GIB, 2 * MIB, 2 * MIB),
        (100 * GIB, 16 * MIB, 16 * MIB),
        (100 * GIB, 3 * MIB // 2, 512 * KIB),
        (GIB // 4, 0, 256 * KIB),
        (GIB // 4, 4 * MIB, 256 * KIB),
    ],
)
def test_a_bucket_is_a_multiple_of_the_erase_block_if_1024_of_them_fit(
    device_bytes: int, erase_bytes: int, bucket_bytes: int
) -> None:
    assert answer(f"bucket_bytes {device_bytes} {erase_bytes}") == str(bucket_bytes)
    assert device_bytes // bucket_bytes >= 1024


def test_progress_shows_what_is_left_the_rate_and_the_time_left() -> None:
    known = "progress_first=1000 progress_left=400 progress_unit_bytes=65536"
    line = f"{known}; progress_start=$((SECONDS - 20)); progress_text"
    assert answer(line) == "25 MiB dirty, 1.9 MiB/s, done in 13 s"


LVS = PLAIN + SSD_UNUSED


def test_the_index_of_a_volume_that_is_there_gets_no_more_memory_than_that_of_a_new_one(
    tmp_path: Path,
) -> None:
    """64 GiB in blocks of 512 bytes would take 11 of the 16 GiB that are free."""
    machine = Machine(tmp_path, lvs=LVS, lv_bytes=64 * GIB, blkid="512\n")
    argv = ("writecache-attach", "--yes", "--cache-lv", "fast", "vg/data")
    text = "64 GiB takes 11.2 GiB of memory\n  use a volume of at most 11650m, or --force"
    refused(machine, argv, text)
    assert machine.run(*argv, "--force").endswith("exit 0\n")


@pytest.mark.parametrize(
    ("script", "option"),
    [
        ("lvmcache-attach", "--cachepool"),
        *((script, "--size=20g") for script in ("lvmcache-attach", "writecache-attach")),
        *((script, "--name=other") for script in ("lvmcache-attach", "writecache-attach")),
    ],
)
def test_options_for_a_new_cache_volume_are_refused_with_one_that_is_there(
    script: str, option: str, tmp_path: Path
) -> None:
    argv = (script, "--yes", *option.split("="), "--cache-lv", "fast", "vg/data")
    text = "--cache-lv takes the volume vg/fast as it is, without --name, --size or --cachepool"
    refused(Machine(tmp_path, lvs=LVS), argv, text)


def test_the_chunk_size_for_a_volume_that_is_there_is_checked_before_the_first_step(
    tmp_path: Path,
) -> None:
    argv = ("lvmcache-attach", "--yes", "--chunk", "33k", "--cache-lv", "fast", "vg/data")
    refused(Machine(tmp_path, lvs=LVS), argv, "chunks of 33 KiB are not possible")
