# SPDX-License-Identifier: GPL-2.0-only
"""What people may call a volume."""

from __future__ import annotations

from dataclasses import replace

from tests.builders import dm_volume, volume

UUID = "0b1e5000-0000-4000-8000-000000000001"


def test_a_volume_is_called_by_its_uuid_which_stays_over_a_boot() -> None:
    known = replace(volume(), backing_uuid=UUID)
    assert known.names == (UUID, "bcache0")
    assert known.is_called(UUID)
    assert known.is_called("bcache0")


def test_a_volume_without_a_uuid_is_not_called_by_an_empty_name() -> None:
    unknown = replace(volume(), backing_uuid="")
    assert unknown.names == ("bcache0",)
    assert not unknown.is_called("")


def test_a_volume_of_lvm_has_its_names_of_lvm_and_of_the_kernel_too() -> None:
    assert {dm_volume().name, dm_volume().title, dm_volume().kernel_name} <= set(dm_volume().names)
