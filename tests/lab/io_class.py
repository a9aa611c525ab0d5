# SPDX-License-Identifier: GPL-2.0-only
"""Which I/O class the writes have that a guest's disks are sent. I/O: tracefs in the guest."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from tests.lab import host
from tests.lab.errors import LabError
from tests.lab.session import Session

IDLE: Final = 3
_CLASS_SHIFT: Final = 13
"""Of `ioprio` (include/uapi/linux/ioprio.h)."""
_TRACING: Final = "/sys/kernel/tracing"
_ISSUE: Final = f"{_TRACING}/events/block/block_rq_issue"
_PROBE: Final = "ebbgate/request"
_FIELDS: Final = {
    "ioprio": ("ioprio", "u16"),
    "flags": ("cmd_flags", "u32"),
    "size": ("__data_len", "u32"),
}
"""Members of `struct request` and their types, by their names in the histogram."""
_PLAIN_WRITE: Final = 1
"""`cmd_flags` of a write that is neither metadata nor waited for."""


@dataclass(frozen=True, slots=True)
class IoClasses:
    """Counts plain writes by class, in a histogram of the event `folder`."""

    session: Session
    folder: str

    def written_bytes(self) -> Counter[int]:
        """Return the bytes of plain writes by I/O class."""
        found: Counter[int] = Counter()
        text = self.session.check(f"cat {self.folder}/hist")
        for kind, ioprio, size in re.findall(
            r"\{ kind: *(\S+) *, ioprio: *(\d+) *\} hitcount: *\d+ *size: *(\d+)",
            re.sub(r"\b(rwbs|flags):", "kind:", text.replace("bytes:", "size:")),
        ):
            if kind in ("W", str(_PLAIN_WRITE)):
                found[int(ioprio) >> _CLASS_SHIFT] += int(size)
        return found


def can_count(session: Session) -> bool:
    """Whether the kernel has histograms of events; Debian's 5.10 has none."""
    session.run(f"mount -t tracefs none {_TRACING}")
    return session.run(["test", "-e", f"{_ISSUE}/hist"]).rc == 0


@contextmanager
def io_classes(session: Session) -> Iterator[IoClasses]:
    """Count from now on, where it can be done; before 6.12 by a probe of the kernel's function."""
    if session.run(f"grep -q ioprio {_ISSUE}/format").rc == 0:
        with _counted(session, _ISSUE, "hist:keys=rwbs,ioprio:vals=bytes") as found:
            yield found
        return
    words = (f"{name}=+{at}(%di):{_FIELDS[name][1]}" for name, at in _offsets(session).items())
    line = f"p:{_PROBE} blk_mq_start_request {' '.join(words)}"
    session.check(f"echo '{line}' >> {_TRACING}/kprobe_events")
    try:
        keys = "hist:keys=flags,ioprio:vals=size"
        with _counted(session, f"{_TRACING}/events/{_PROBE}", keys) as found:
            yield found
    finally:
        session.check(f"echo '-:{_PROBE}' >> {_TRACING}/kprobe_events")


@contextmanager
def _counted(session: Session, folder: str, trigger: str) -> Iterator[IoClasses]:
    session.check(f"echo '{trigger}' > {folder}/trigger")
    try:
        yield IoClasses(session, folder)
    finally:
        session.check(f"echo '!{trigger}' > {folder}/trigger")


def _offsets(session: Session) -> dict[str, int]:
    """Return where the fields of `struct request` are, of the guest's own types."""
    types = f"{session.share}/vmlinux.btf"
    session.check(f"cp /sys/kernel/btf/vmlinux {types}")
    text = host.run(["bpftool", "btf", "dump", "file", types, "format", "raw"])
    for start in re.finditer(r"STRUCT 'request' size", text):
        members = text[start.end() : text.index("\n[", start.end())]
        found = {
            name: re.search(rf"'{member}' type_id=\d+ bits_offset=(\d+)", members)
            for name, (member, _) in _FIELDS.items()
        }
        if all(found.values()):
            return {name: int(each[1]) // 8 for name, each in found.items() if each}
    raise LabError("the guest's kernel has no request with these fields")
