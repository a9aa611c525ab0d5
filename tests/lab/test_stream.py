# SPDX-License-Identifier: GPL-2.0-only
"""A sequential stream on a real bcache. I/O: the guest."""

from __future__ import annotations

from tests.bench import streams
from tests.lab.kernel_matrix import needs, on_kernels
from tests.lab.session import Session

STREAM_MIB = 192


@on_kernels("bcache: a stream is absorbed while there is room", "trixie")
def test_a_write_stream_is_absorbed_while_there_is_room(guest: Session) -> None:
    needs(guest, "volume")
    with streams.volume(guest, "ebbgate") as stack:
        streams.stream(guest, stack.device, "write", STREAM_MIB)
        # Stock bcache lets all but its first 4 MiB pass by the cache. How much more is taken in is
        # the policy's choice, by what it has measured.
        assert stack.dirty_bytes_exact() >= 40 * streams.MIB
