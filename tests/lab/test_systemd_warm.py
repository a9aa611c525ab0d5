# SPDX-License-Identifier: GPL-2.0-only
"""`ebbgate warm` as installed: systemd starts the process that reads, which may read any file and
write none, while the daemon itself may read no file of users; and finds where they lie.

I/O: a guest of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.bench.product import POLICIES
from tests.lab.bcache_stack import BcacheStack
from tests.lab.conftest import without_lab
from tests.lab.errors import NoLab
from tests.lab.guest import Guest
from tests.lab.service_harness import UNIT, install
from tests.lab.session import Session
from tests.lab.wait import wait_until
from tests.layout_fixture import guest_document

HOME = "/home"
"""Where the daemon itself sees nothing (ProtectHome=)."""
FOLDER = f"{HOME}/lab-warm"
FILE = f"{FOLDER}/private/file"


FILE_BYTES = 2 << 20
IMAGE = f"{FOLDER}/private/vm.qcow2"
POLICY = """\
version: 1
name: hot
strategies: [idle_destage, promote_hot: {{files: '{}'}}]
"""


@pytest.fixture(scope="module")
def machine() -> Iterator[Session]:
    """A guest with systemd in which ebbgate is installed."""
    try:
        with Guest(systemd=True) as session:
            install(session)
            yield session
    except NoLab as reason:
        without_lab(reason)


@pytest.fixture
def stack(machine: Session) -> Iterator[BcacheStack]:
    """A volume with a file system that has a private file; the service is stopped afterwards."""
    with BcacheStack(machine) as made, private_file(machine, made):
        made.expect_changed("writeback_rate")
        yield made


@contextmanager
def private_file(machine: Session, stack: BcacheStack) -> Iterator[None]:
    machine.check(
        f"mkfs.ext4 -q {stack.device} 64M && mkdir -p {FOLDER} &&"
        f" mount {stack.device} {FOLDER} && mkdir -m 700 {FOLDER}/private &&"
        f" dd if=/dev/urandom of={FILE} bs=1M count={FILE_BYTES >> 20} oflag=direct &&"
        f" chown -R nobody {FOLDER}/private && chmod 600 {FILE}"
    )
    try:
        yield
    finally:
        machine.check(f"systemctl stop {UNIT}", timeout_s=60)
        machine.check(f"umount {FOLDER}")


@pytest.mark.full
def test_the_installed_service_warms_a_private_file_and_a_range(
    machine: Session, stack: BcacheStack
) -> None:
    machine.check(f"systemctl start {UNIT}", timeout_s=120)
    for target in (FILE, f"--range {stack.volume}:1GiB-1028MiB"):
        words = f"ebbgate --patience 60 warm --wait --json {target}"
        (job,) = json.loads(machine.check(words, timeout_s=180))["jobs"]
        assert (job["state"], job["hit_ratio"] >= 0.99) == ("done", True), job
    refused = machine.run("ebbgate --patience 60 warm /etc/passwd", timeout_s=90)
    assert refused.rc == 74, refused.stderr
    machine.check(f"systemctl stop {UNIT}", timeout_s=60)
    assert machine.run("systemctl is-active ebbgate-warm.socket").stdout.strip() == "inactive"


def layout(machine: Session) -> dict[str, Any]:
    """Return what the service knows of the files that its policy names."""
    (volume,) = json.loads(machine.check("ebbgate status --json", timeout_s=60))["volumes"]
    return dict(volume.get("layout") or {})


@contextmanager
def named_by_policy(machine: Session, files: str) -> Iterator[dict[str, Any]]:
    """Start the service with a policy that names files; yield what it finds of them."""
    machine.put_file(f"{POLICIES}/hot.yaml", POLICY.format(files))
    try:
        machine.check(f"systemctl start {UNIT}", timeout_s=120)
        yield wait_until(lambda: layout(machine), 60, "the layout of the files")
    finally:
        machine.check(f"rm {POLICIES}/hot.yaml")


@pytest.mark.full
def test_the_installed_service_finds_private_files_that_a_policy_names(
    machine: Session, stack: BcacheStack
) -> None:
    with named_by_policy(machine, f"{FOLDER}/private/*") as found:
        assert (found["files"], found["left_out"], found["error"]) == (1, {}, ""), found
        assert found["known_bytes"] == FILE_BYTES
    (shown,) = json.loads(machine.check(f"ebbgate layout show --json {FILE}"))["files"]
    assert {each["volume"] for each in shown["ranges"]} == {stack.volume}
    assert sum(each["length_bytes"] for each in shown["ranges"]) == FILE_BYTES


@pytest.mark.full
def test_the_installed_service_finds_a_file_of_a_guest_in_a_private_qcow2_image(
    machine: Session, stack: BcacheStack
) -> None:
    machine.check(
        f"qemu-img create -q -f qcow2 {IMAGE} 16M &&"
        f" qemu-io -f qcow2 -c 'write -q -P 7 5M 2M' {IMAGE} &&"
        f" chown nobody {IMAGE} && chmod 600 {IMAGE} && sync"
    )
    machine.put_file(f"{IMAGE}.guest.json", json.dumps(guest_document()))
    with named_by_policy(machine, IMAGE) as found:
        assert (found["files"], found["left_out"], found["error"]) == (1, {}, ""), found
        assert found["known_bytes"] == 2 << 20
