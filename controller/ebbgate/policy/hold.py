# SPDX-License-Identifier: GPL-2.0-only
"""A hold of write-back for a disk that may sleep: when it really holds, and when it must end. Pure.

A rule asks for it (`destage_rate: hold`). bcache's thread then still writes what is in its key
buffer, at most 500 pieces, and begins no new ones (drivers/md/bcache/writeback.c, read_dirty). So
a hold counts as one only after nothing was under way for a while. The level and the age of dirty
data end it, whatever the rule says; it begins anew once they are written back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ebbgate.model.frame import Frame
from ebbgate.policy.strategies.destage_state import DestageParams
from ebbgate.policy.strategies.pressure import must_destage
from ebbgate.units import MIB, NS_PER_S, format_ns

AGE_NS_MAX: Final = 24 * 3600 * NS_PER_S
"""Without the objective `dirty_age_max`."""
SETTLED_NS: Final = 3 * NS_PER_S
"""Longer than bcache's thread ever sleeps between two pieces."""
_LEFT_BYTES: Final = MIB
"""At most this much dirty data counts as written back: the key buffer takes the rest along."""
_UNKNOWN: Final = "the level of the cache is unknown"


@dataclass(frozen=True, slots=True)
class HoldState:
    """What is known of a hold; all at its default while no rule asks for one.

    - `moved_ns`: when write-back was last seen under way; None: no hold.
    - `under_way_ios`: pieces under way; None if unknown.
    - `settled`: nothing is under way any more.
    - `dirty_since_ns`: since when dirty data is held back; None: there is none.
    - `over`: why the hold had to end; empty while it need not.
    """

    moved_ns: int | None = None
    under_way_ios: int | None = None
    settled: bool = False
    dirty_since_ns: int | None = None
    over: str = ""

    @property
    def text(self) -> str:
        """What has become of it, for people."""
        if self.moved_ns is None:
            return ""
        if self.over:
            return f"the hold has ended: {self.over}"
        if self.settled:
            return "held"
        count = "what is" if not self.under_way_ios else f"{self.under_way_ios} pieces"
        return f"held, {count} still under way"


NONE: Final = HoldState()


def on_frame(
    state: HoldState, frame: Frame, params: DestageParams, age_ns_max: int, *, wanted: bool
) -> HoldState:
    """Handle a tick. `wanted`: a rule asks for a hold, and no other one goes before it."""
    if not wanted:
        return NONE
    now_ns, dirty = frame.at_ns, frame.dirty_bytes
    since_ns = None if dirty == 0 else state.dirty_since_ns
    over = "" if state.over == _UNKNOWN else state.over
    if over and dirty is not None and dirty <= _LEFT_BYTES:
        over, since_ns = "", None
    if since_ns is None and dirty != 0:
        since_ns = now_ns
    over = over or _must_end(frame, since_ns, params, age_ns_max)
    still = frame.destage_in_flight_ios == 0 and frame.destage_bytes_per_s == 0
    moved_ns = state.moved_ns if still and state.moved_ns is not None and not over else now_ns
    settled = now_ns - moved_ns >= SETTLED_NS
    return HoldState(moved_ns, frame.destage_in_flight_ios, settled, since_ns, over)


def _must_end(
    frame: Frame, dirty_since_ns: int | None, params: DestageParams, age_ns_max: int
) -> str:
    """Return why the hold must end; empty if it need not."""
    if dirty_since_ns is not None and frame.at_ns - dirty_since_ns >= age_ns_max:
        return f"dirty data has waited for {format_ns(frame.at_ns - dirty_since_ns)}"
    if frame.dirty_room_bytes is None:
        return _UNKNOWN
    return "the cache is nearly full" if must_destage(frame, params) else ""
