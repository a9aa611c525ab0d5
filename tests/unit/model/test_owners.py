# SPDX-License-Identifier: GPL-2.0-only
"""Single chunks find their group, and groups their chunks."""

from __future__ import annotations

from ebbgate.model.heat import ChunkRun, VolumeLayout
from ebbgate.model.owners import NO_GROUP, NO_OWNERS, owners_of

LAYOUT = VolumeLayout(0, ("/srv/a", "/srv/b"), (ChunkRun(0, 10, 1), ChunkRun(20, 30, 0)))


def test_a_chunk_beside_or_between_files_has_none() -> None:
    owners = owners_of(NO_OWNERS, LAYOUT)
    groups = [owners.group_of(chunk) for chunk in (0, 9, 10, 19, 20, 30)]
    assert groups == [1, 1, NO_GROUP, NO_GROUP, 0, NO_GROUP]
    assert [owners.name_of(group) for group in groups[2:5]] == ["", "", "/srv/a"]


def test_a_group_has_the_size_of_its_chunks_and_no_group_has_none() -> None:
    owners = owners_of(NO_OWNERS, LAYOUT)
    assert list(owners.chunks_of(0)) == list(range(20, 30))
    assert [owners.size_of(group) for group in (0, 1, NO_GROUP)] == [10, 10, 0]
