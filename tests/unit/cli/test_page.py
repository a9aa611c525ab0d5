# SPDX-License-Identifier: GPL-2.0-only
"""Tables of every width: no cell is cut."""

from __future__ import annotations

import pytest

from ebbgate.cli.page import Page

_COLUMNS = ("DEVICE", "ROLE", "SCHEDULER", "SIZE", "NOTE")
_ROW = (
    "mapper/vg00-a_really_long_logical_volume_name",
    "backing device",
    "mq-deadline",
    "1,234 MiB (rotational)",
    "shared with another volume, which is not watched",
)


def _printed(capsys: pytest.CaptureFixture[str], row: tuple[str, ...]) -> list[str]:
    Page().table(_COLUMNS, [row], right=("SIZE",))
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_a_table_shows_all_of_each_cell(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = _printed(capsys, _ROW)
    assert max(map(len, lines)) <= width
    # Cells are broken at spaces or, where a word is too long, within it; read column by column.
    shown = "".join(lines).replace(" ", "")
    for cell in (*_COLUMNS, *_ROW):
        assert all(shown.count(c) >= cell.count(c) for c in set(cell.replace(" ", "")))
    assert "…" not in shown


@pytest.mark.parametrize("width", [30, 40, 80])
def test_a_fact_is_shown_whole(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    long = "LVM-" + "v" * 32 + "d" * 32
    Page().facts([("queue of the disks", long), ("state", "idle")])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    shown = "".join(line[20:].strip() for line in lines if not line.startswith("  state"))
    assert (shown, "…" in "".join(lines)) == (long, False)


def test_only_the_last_column_wraps_where_the_others_have_room(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = _printed(capsys, ("sda", "backing device", "mq-deadline", "1 GiB", _ROW[-1]))
    first, *rest = (line.split() for line in lines[1:])
    assert first[:6] == ["sda", "backing", "device", "mq-deadline", "1", "GiB"]
    assert rest
    assert " ".join((*first[6:], *(word for line in rest for word in line))) == _ROW[-1]
