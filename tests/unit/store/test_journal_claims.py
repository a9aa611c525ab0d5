# SPDX-License-Identifier: GPL-2.0-only
"""Of what several volumes want for one knob, one value is in force."""

from __future__ import annotations

import pytest

from ebbgate.store.journal_claims import JournalClaims
from ebbgate.store.last_written import Values
from tests.builders import journal_entry

KNOB = "congested_read_threshold_us"
PATH = f"/sys/fs/bcache/11111111-2222-3333-4444-555555555555/{KNOB}"
A, B, C = (journal_entry(KNOB, volume=f"bcache{n}", path=PATH, instance=7) for n in range(3))


@pytest.fixture
def claims() -> JournalClaims:
    made = JournalClaims(lambda _entry: None)
    for each in (A, B, C):
        made.reclaim(each)
    return made


def test_without_an_override_the_newest_value_is_in_force(claims: JournalClaims) -> None:
    assert claims.successor(C) is None, "no volume wants any value yet"
    assert [claims.want(each, n, by_person=False) for each, n in ((A, "1"), (B, "2"))] == ["", ""]
    assert (claims.successor(C), claims.successor(B)) == ((B, "2"), (A, "1"))
    claims.want(A, "3", by_person=False)
    assert claims.successor(C) == (A, "3")


def test_the_newest_override_wins_over_all_others(claims: JournalClaims) -> None:
    claims.want(A, "1", by_person=True)
    assert claims.want(B, "2", by_person=False) == "bcache0"
    assert claims.replaced_by(A) == "", "a tuned value replaces no override"
    assert claims.want(C, "3", by_person=True) == ""
    assert [claims.replaced_by(each) for each in (A, B, C)] == ["bcache2", "", ""]
    claims.close("bcache2", KNOB)
    assert (claims.successor(B), claims.successor(A)) == ((A, "1"), (B, "2"))


def test_what_a_knob_may_have_is_kept_until_the_last_claim_ends(claims: JournalClaims) -> None:
    assert claims.present(A) == ()
    claims.expect(A, ("1", "2", "1"))
    assert claims.present(B) == ("1", "2")
    for name in ("bcache0", "bcache1"):
        claims.close(name, KNOB)
    assert claims.present(C) == ("1", "2")
    claims.close("bcache2", KNOB)
    assert claims.present(C) == ()


def test_a_device_that_is_made_again_has_claims_of_its_own(claims: JournalClaims) -> None:
    claims.want(A, "1", by_person=True)
    claims.expect(A, ("1",))
    again = journal_entry(KNOB, volume="bcache1", path=PATH, instance=8)
    assert claims.want(again, "2", by_person=False) == ""
    assert (claims.present(again), claims.successor(again)) == ((), None)


def test_a_volume_without_a_claim_has_no_override_that_is_replaced(claims: JournalClaims) -> None:
    claims.want(A, "1", by_person=True)
    claims.close("bcache1", KNOB)
    assert claims.replaced_by(B) == ""


@pytest.mark.parametrize(
    ("mine", "theirs", "kept"),
    [
        (Values("8", "32"), Values("8", "16"), True),
        (Values("8", "32"), Values("16", "8"), False),
        (None, Values("8", "32"), True),
        (Values("8", "32"), None, True),
    ],
)
def test_a_value_that_another_volume_wants_or_may_want_stays(
    mine: Values | None, theirs: Values | None, kept: bool
) -> None:
    made = JournalClaims(lambda entry: mine if entry == A else theirs)
    for each in (A, B):
        made.reclaim(each)
    assert made.disclaim(A) is kept
    assert made.disclaim(B) is False, "it is the last one"
