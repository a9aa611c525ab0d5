# SPDX-License-Identifier: GPL-2.0-only
"""The arithmetic of `image-in-file`."""

from __future__ import annotations

import json

from tests.bench.guest.file_mover import Chunk
from tests.bench.image_in_file import chunks_by_file, figures
from tests.lab.devices import MIB


def test_the_chunks_of_files_are_read_of_what_the_layout_shows() -> None:
    ranges = [{"offset_bytes": 0, "volume_bytes": 5 * MIB, "length_bytes": 2 * MIB}]
    shown = json.dumps({"files": [{"path": "/db/1", "ranges": ranges}]})
    assert chunks_by_file(shown) == {"/db/1": [Chunk(5, 0, MIB), Chunk(6, MIB, MIB)]}


def test_what_is_chosen_by_both_layouts_is_compared() -> None:
    counts = {1: (300, 0), 2: (250, 0), 9: (450, 0)}
    truth = {"hot": [Chunk(1, 0, MIB), Chunk(2, MIB, MIB)], "cold": [Chunk(3, 0, MIB)]}
    assert figures(counts, truth, truth) == {"chunks": 2, "different": 0, "missed": 0.55}
    wrong = {**truth, "hot": [Chunk(1, 0, MIB), Chunk(4, MIB, MIB)]}
    assert figures(counts, wrong, truth) == {"chunks": 2, "different": 2, "missed": 0.3}
