# SPDX-License-Identifier: GPL-2.0-only
"""What the probe says of each kernel that the lab boots."""

from __future__ import annotations

from tests.lab.kernel_matrix import LIMITED, MISSING, OK, check, has_module_types, on_kernels
from tests.lab.session import Session


@on_kernels("what is missing is said", "trixie")
def test_the_probe_gives_each_signal_or_says_why_not(guest: Session) -> None:
    said = check(guest)
    if has_module_types(guest):
        assert set(said.values()) == {OK}, said
    for name, text in said.items():
        assert text == OK or text.startswith((LIMITED, MISSING)), (name, text)
