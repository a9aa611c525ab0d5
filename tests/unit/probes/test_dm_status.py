# SPDX-License-Identifier: GPL-2.0-only
"""The lines of dm-cache and dm-writecache, read by their counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.model.dm import CacheStatus, DmHealth
from ebbgate.probes.dm_status import (
    BadLine,
    lvm_name,
    parse_cache_status,
    parse_cache_table,
    parse_writecache_status,
    parse_writecache_table,
)
from tests.fake_dm import CACHE_TABLE, FakeCache

PLAIN = "8 72/16384 512 8/1024 1 2 3 4 5 6 7 1 writeback 2 migration_threshold 2048 smq 0 rw -"


def test_every_field_of_the_status_line_is_read() -> None:
    status = parse_cache_status(PLAIN)
    assert status == CacheStatus(
        health=DmHealth.OK,
        metadata_block_bytes=4096,
        metadata_used=72,
        metadata_total=16384,
        block_bytes=256 * 1024,
        used=8,
        total=1024,
        read_hits=1,
        read_misses=2,
        write_hits=3,
        write_misses=4,
        demotions=5,
        promotions=6,
        dirty=7,
        features=("writeback",),
        migration_threshold_sectors=2048,
        policy="smq",
    )
    assert status.cache_mode == "writeback"
    assert status.metadata_ratio == 72 / 16384


def test_policy_settings_of_lvm_do_not_shift_fields() -> None:
    status = parse_cache_status(FakeCache(threshold=512).status())
    assert (status.policy, status.migration_threshold_sectors) == ("mq", 512)
    assert status.policy_settings[0] == ("random_threshold", "0")
    assert status.features == ("metadata2", "writeback")


@pytest.mark.parametrize(
    ("end", "health"),
    [
        ("rw -", DmHealth.OK),
        ("rw", DmHealth.OK),
        ("rw needs_check", DmHealth.NEEDS_CHECK),
        ("ro needs_check", DmHealth.NEEDS_CHECK),
        ("ro -", DmHealth.READ_ONLY),
    ],
)
def test_the_health_is_at_the_end_of_the_line(end: str, health: DmHealth) -> None:
    assert parse_cache_status(PLAIN.removesuffix("rw -") + end).health is health


@pytest.mark.parametrize("line", ["Fail", "Error", " Fail \n"])
def test_a_failed_cache_has_no_other_field(line: str) -> None:
    assert parse_cache_status(line) == CacheStatus(DmHealth.FAILED)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("", "the metadata block size"),
        ("8", "used/total metadata blocks"),
        ("8 40", "used/total metadata blocks"),
        ("8 40/x 128 1/2", "used/total metadata blocks"),
        ("8 40/2048 128 1/2 1 2 3 4 5 6 x", "dirty"),
        ("8 40/2048 128 1/2 1 2 3 4 5 6 7 3 writeback", "features"),
    ],
)
def test_an_odd_line_is_refused_with_the_expected_field(line: str, what: str) -> None:
    with pytest.raises(BadLine, match=what):
        parse_cache_status(line)


@given(st.text(alphabet="0123456789/ -abcrw", max_size=120))
def test_no_line_raises_another_error(line: str) -> None:
    for parse in (parse_cache_status, parse_cache_table, parse_writecache_table):
        try:
            parse(line)
        except BadLine as error:
            assert "dm-" in str(error)


def test_a_parsed_table_has_the_same_text() -> None:
    table = parse_cache_table(CACHE_TABLE)
    assert (table.metadata, table.cache, table.origin) == ("253:3", "253:2", "253:4")
    assert (table.block_sectors, table.policy) == (128, "mq")
    assert table.params() == CACHE_TABLE


def test_writecache_is_read_on_new_and_on_old_kernels() -> None:
    line = "0 1000 400 16 1 2 3 4 5 6 7 8 9 10"
    status = parse_writecache_status(line, 4096)
    assert (status.dirty, status.under_writeback, status.errors) == (600, 16, 0)
    assert dict(status.counters)["writes_around"] == 6
    assert parse_writecache_status("0 1000 400 16", 4096).counters == ()
    assert parse_writecache_table("s 253:4 253:2 4096 0") == ("253:4", "253:2", 4096)


@pytest.mark.parametrize(
    ("dm_name", "name"),
    [
        ("vg-data", "vg/data"),
        ("my--vg-data", "my-vg/data"),
        ("vg-my--data", "vg/my-data"),
        ("vg-data-real", "vg/data"),
        ("vgdata", ""),
    ],
)
def test_a_doubled_dash_in_an_lvm_name_is_one_dash(dm_name: str, name: str) -> None:
    assert lvm_name(dm_name, "LVM-abc") == name
    assert lvm_name(dm_name, "") == ""
