# SPDX-License-Identifier: GPL-2.0-only
"""The arithmetic of `image-in-file`."""

from __future__ import annotations

import json

import pytest

from tests.bench.guest.file_mover import Chunk
from tests.bench.image_in_file import chosen, chunks_by_file, figures
from tests.lab.devices import MIB


def test_the_chunks_of_files_are_read_of_what_the_layout_shows() -> None:
    ranges = [{"offset_bytes": 0, "volume_bytes": 5 * MIB, "length_bytes": 2 * MIB}]
    shown = json.dumps({"files": [{"path": "/db/1", "ranges": ranges}]})
    assert chunks_by_file(shown) == {"/db/1": [Chunk(5, 0, MIB), Chunk(6, MIB, MIB)]}


HOT, COLD = ([Chunk(number, 0, MIB) for number in range(*ends)] for ends in ((0, 40), (40, 900)))
FILES = {"hot": HOT, "cold": COLD}
WINDOW = {**{chunk.number: (20, 5) for chunk in HOT}, 50: (1, 0)}


def test_what_is_chosen_by_both_layouts_is_compared() -> None:
    assert figures([WINDOW] * 3, FILES, FILES) == {
        "chunks": 40,
        "different": 0,
        "missed": pytest.approx(1000 / 1001),
    }
    # A chunk that nobody has missed belongs to a hot file, or so one layout says.
    unseen = [{**WINDOW, 7: (0, 0)}] * 3
    assert 7 in chosen(unseen, FILES)
    wrong = {**FILES, "hot": [chunk for chunk in HOT if chunk.number != 7]}
    found = figures(unseen, wrong, FILES)
    assert (found["chunks"], found["different"]) == (39, 1)


def test_what_was_missed_in_one_window_only_is_not_chosen() -> None:
    assert chosen([WINDOW, {}, {}], FILES) == set()
