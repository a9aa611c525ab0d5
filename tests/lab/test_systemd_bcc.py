# SPDX-License-Identifier: GPL-2.0-only
"""The service on a kernel without BTF: in its sandbox, the probe compiles its programs with bcc.

I/O: guests with systemd as process 1 and the headers of their kernel: one with this machine's
system, and one with Debian 13, its bcc and its kernel.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab import kernel, kernel_headers
from tests.lab.bcache_stack import BcacheStack
from tests.lab.conftest import without_lab
from tests.lab.debian_guest import debian_guest
from tests.lab.errors import NoLab
from tests.lab.guest import Guest
from tests.lab.service_harness import UNIT, install, show
from tests.lab.session import Session
from tests.lab.wait import wait_until

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]
BTF = "/sys/kernel/btf -/lib/modules/%v/build/vmlinux"
"""Where libbpf looks for type information: Debian 13's headers have the kernel's, too."""
DOCTOR = """
mount -t tmpfs none /sys/kernel/btf
built=/lib/modules/$(uname -r)/build/vmlinux
! test -e $built || mount --bind /dev/null $built
ebbgate doctor
"""
"""The doctor where it finds no BTF either, as the service."""
DROP_IN = f"/run/systemd/system/{UNIT}.d/lab.conf"


@pytest.fixture(scope="module", params=["", "trixie"])
def machine(request: pytest.FixtureRequest) -> Iterator[Session]:
    try:
        kernel_headers.fetch(request.param or kernel.chosen())
        with _guest(request.param) as session:
            install(session, "install-probe-bcc")
            session.put_file(DROP_IN, f"[Service]\nInaccessiblePaths={BTF}\n")
            session.check("systemctl daemon-reload")
            yield session
    except NoLab as reason:
        without_lab(reason)


def _guest(release: str) -> Guest:
    """Describe the guest of a release; of none: with this machine's system."""
    return debian_guest(release, "guest-bcc", "python3-bpfcc") if release else Guest(systemd=True)


def probe(machine: Session) -> Any:
    """The probe in the daemon's status."""
    return json.loads(machine.check("ebbgate --json status", timeout_s=90))["daemon"]["probe"]


def test_the_service_measures_with_bcc_within_its_sandbox(machine: Session) -> None:
    with BcacheStack(machine) as stack:
        machine.check(f"systemctl start {UNIT}", timeout_s=240)
        wait_until(lambda: probe(machine)["state"] == "running", 120, "the probe to run")
        found = probe(machine)
        assert found["kind"] == "bcc"
        assert found["signals"]["path"] == "ok"
        assert found["signals"]["class"] == "ok, but fills count as foreground writes"
        group = "/sys/fs/cgroup" + show(machine, "ControlGroup")
        peak, limit = int(machine.read(f"{group}/memory.peak")), int(show(machine, "MemoryMax"))
        # Measured: 282 of 512 MiB.
        assert peak < limit * 3 / 4, f"{peak >> 20} of {limit >> 20} MiB"
        assert "oom_kill 0" in machine.read(f"{group}/memory.events")
        status = machine.check(f"ebbgate status {stack.volume}", timeout_s=90)
        assert "cannot" not in status
        text = machine.check(["unshare", "--mount", "sh", "-c", DOCTOR], timeout_s=300)
        doctor = " ".join(text.split())
        assert "no BTF type information: the bcc probe runs" in doctor
        assert "class ok, but fills count as foreground writes" in doctor
        assert "dm_path missing: the bcc probe does not measure paths of device-mapper" in doctor
        machine.check(f"systemctl stop {UNIT}", timeout_s=60)
