# SPDX-License-Identifier: GPL-2.0-only
"""What people see of promote_hot: what is moved, held out and measured, and of which files."""

from __future__ import annotations

from ebbgate.control.promotion_status import promotion_status
from ebbgate.model.heat import ChunkRun, VolumeLayout
from ebbgate.model.owners import NO_OWNERS, owners_of
from ebbgate.model.promotion import ChunkState, HotChunk, HotGroup, MoverStatus, Promotion
from ebbgate.policy.strategies.promote_benefit import Benefit, Measured, Watched
from ebbgate.policy.strategies.promote_choice import Plan
from ebbgate.policy.strategies.promote_hot import PromotePhase, PromoteState
from ebbgate.units import MIB

LAYOUT = VolumeLayout(0, ("/srv/a", "/srv/b"), (ChunkRun(0, 10, 1), ChunkRun(20, 30, 0)))
PLAN = Plan(
    at_ns=3,
    listed={
        5: Watched(3, 1.0, False),
        25: Watched(3, 4.0, True),
        15: Watched(3, 2.0, False),
        6: Watched(3, 0.5, False),
    },
    promotion=Promotion((15,), 0.3),
    done=frozenset({5, 6}),
    failed=frozenset({6}),
    groups=(("/srv/b", 1),),
)


def test_chunks_have_their_file_and_what_became_of_them() -> None:
    owners = owners_of(NO_OWNERS, LAYOUT)
    state = PromoteState(phase=PromotePhase.MOVE, plan=PLAN, owners=owners)
    found = promotion_status(state, MoverStatus(), "moves: so much")
    assert found.chunks == (
        HotChunk(25, ChunkState.HELD_OUT, 4.0, "/srv/a"),
        HotChunk(15, ChunkState.PENDING, 2.0, ""),
        HotChunk(5, ChunkState.MOVED, 1.0, "/srv/b"),
        HotChunk(6, ChunkState.FAILED, 0.5, "/srv/b"),
    )
    assert found.groups == (HotGroup("/srv/b", 1),)
    assert (found.pending_bytes, found.held_out_bytes) == (MIB, MIB)
    assert (found.phase, found.reason) == ("moves", "moves: so much")


def test_what_was_not_measured_is_unknown() -> None:
    found = promotion_status(PromoteState(), MoverStatus(), "")
    assert (found.saved_ns, found.saved_error_ns, found.cost_ns) == (None, None, None)
    measured = Measured(9, 2, 5.0, 1.0, 6.0, 2.0)
    benefit = Benefit(last=measured, total_gain_ns=-7.0, total_error_ns=3.0, total_cost_ns=2.0)
    found = promotion_status(PromoteState(benefit=benefit), MoverStatus(), "")
    assert (found.saved_ns, found.saved_error_ns, found.cost_ns) == (-7.0, 3.0, 2.0)
