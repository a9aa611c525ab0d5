# SPDX-License-Identifier: GPL-2.0-only
"""The programs that disable preemption, loaded on this machine's kernel."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.bpf_host.live import (
    LiveProbe,
    LoopDisk,
    fio,
    probe_with,
    run,
    skip_unless_possible,
    unavailable,
)


def _why_not() -> str | None:
    if missing := [name for name in ("cc", "bpftool") if shutil.which(name) is None]:
        return f"not installed: {', '.join(missing)}"
    if reason := unavailable():
        return reason
    btf = run(["bpftool", "btf", "dump", "file", "/sys/kernel/btf/vmlinux"])
    return None if "'bpf_preempt_disable'" in btf else "this kernel has no bpf_preempt_disable"


@pytest.fixture(scope="module", autouse=True)
def _possible() -> None:
    skip_unless_possible(_why_not())


def test_guarded_programs_count_the_same_requests(tmp_path: Path) -> None:
    program = probe_with("guarded.c", {"kernel_features"}, tmp_path / "probe")
    with (
        LoopDisk(tmp_path / "disk", 64 << 20) as disk,
        LiveProbe("--tick-ms", "50", program=program) as probe,
    ):
        probe.track_disk(disk.path)
        before = probe.next_tick()["fg"]["write"]
        job = fio(disk.path, "--rw=randwrite", "--io_size=4m")
        tick = probe.next_tick()
        assert tick["fg"]["write"]["ios"] - before["ios"] == job["write"]["total_ios"] == 1024
        assert tick["dev"]["backing"]["write"]["fg"]["ios"] == 1024
        assert tick["inflight"] == {"read": 0, "write": 0}
        assert all("bpf_preempt_disable" in text for text in instructions(probe))


def instructions(probe: LiveProbe) -> list[str]:
    """Return the instructions of each program that the probe has loaded."""
    folder = Path(f"/proc/{probe.process.pid}/fdinfo")
    fields = (dict(re.findall(r"(\w+):\t(\w+)", file.read_text())) for file in folder.iterdir())
    ids = {each["prog_id"] for each in fields if "prog_id" in each}
    assert ids
    return [run(["bpftool", "prog", "dump", "xlated", "id", number]) for number in ids]
