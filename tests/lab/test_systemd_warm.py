# SPDX-License-Identifier: GPL-2.0-only
"""`ebbgate warm` as installed: systemd starts the process that reads, which may read any file and
write none, while the daemon itself may read no file of users. I/O: a guest of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.lab.bcache_stack import BcacheStack
from tests.lab.conftest import without_lab
from tests.lab.errors import NoLab
from tests.lab.guest import Guest
from tests.lab.service_harness import UNIT, install
from tests.lab.session import Session

HOME = "/home"
"""Where the daemon itself sees nothing (ProtectHome=)."""
FOLDER = f"{HOME}/lab-warm"
FILE = f"{FOLDER}/private/file"


@pytest.fixture
def machine() -> Iterator[Session]:
    """A guest with systemd in which ebbgate is installed."""
    try:
        with Guest(systemd=True) as session:
            install(session)
            yield session
    except NoLab as reason:
        without_lab(reason)


@pytest.mark.full
def test_the_installed_service_warms_a_private_file_and_a_range(machine: Session) -> None:
    with BcacheStack(machine) as stack:
        stack.expect_changed("writeback_rate")
        machine.check(
            f"mkfs.ext4 -q {stack.device} 64M && mkdir -p {FOLDER} &&"
            f" mount {stack.device} {FOLDER} && mkdir -m 700 {FOLDER}/private &&"
            f" dd if=/dev/urandom of={FILE} bs=1M count=2 oflag=direct &&"
            f" chown -R nobody {FOLDER}/private && chmod 600 {FILE}"
        )
        try:
            machine.check(f"systemctl start {UNIT}", timeout_s=120)
            for target in (FILE, f"--range {stack.volume}:1GiB-1028MiB"):
                words = f"ebbgate --patience 60 warm --wait --json {target}"
                (job,) = json.loads(machine.check(words, timeout_s=180))["jobs"]
                assert (job["state"], job["hit_ratio"] >= 0.99) == ("done", True), job
            refused = machine.run("ebbgate --patience 60 warm /etc/passwd", timeout_s=90)
            assert refused.rc == 74, refused.stderr
        finally:
            machine.check(f"systemctl stop {UNIT}", timeout_s=60)
            machine.check(f"umount {FOLDER}")
        assert machine.run("systemctl is-active ebbgate-warm.socket").stdout.strip() == "inactive"
