# SPDX-License-Identifier: GPL-2.0-only
"""Values as the kernel prints them become values as it takes them."""

from __future__ import annotations

import pytest

from ebbgate.knobs.knob import ValueForm, parse_value
from ebbgate.units import GIB


@pytest.mark.parametrize(
    ("form", "text", "value"),
    [
        (ValueForm.SIZE, "0", "0"),
        (ValueForm.SIZE, "1.5G", str(3 * GIB // 2)),
        (ValueForm.RATE, "500.0k", "1000"),
        (ValueForm.CHOICE, "writethrough writeback [writearound] none", "writearound"),
        (ValueForm.CHOICE, "odd", "odd"),
        (ValueForm.SIZE, "odd", "odd"),
        (ValueForm.PLAIN, "8\n", "8"),
    ],
)
def test_printed_values_become_written_values(form: ValueForm, text: str, value: str) -> None:
    assert parse_value(form, text) == value
