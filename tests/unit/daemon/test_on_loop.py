# SPDX-License-Identifier: GPL-2.0-only
"""A file that is on a loop device, but whose place there is unknown, is refused for that reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbgate.daemon.on_loop import refuse_on_loop
from ebbgate.errors import ActuationError
from tests.fake_sysfs import fake_bcache
from tests.on_loop_fixture import ON_LOOP, add_dm_on_loop


def test_the_file_of_the_loop_device_is_the_next_step(tmp_path: Path) -> None:
    fake = fake_bcache(tmp_path)
    add_dm_on_loop(tmp_path)
    with pytest.raises(ActuationError) as caught:
        refuse_on_loop(fake.sysfs, "/mnt/a", ON_LOOP)
    assert caught.value.message.startswith("/mnt/a is on loop0, a loop device of /srv/image; ")
    assert caught.value.hint == "name the loop device's file instead: /srv/image"


def test_a_device_without_a_loop_device_below_it_is_not_refused(tmp_path: Path) -> None:
    fake = fake_bcache(tmp_path)
    refuse_on_loop(fake.sysfs, "/mnt/a", (254, 0))
    refuse_on_loop(fake.sysfs, "/mnt/a", (99, 0))
