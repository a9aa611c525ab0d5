# SPDX-License-Identifier: GPL-2.0-only
"""A stand-in for systemctl in a bare system: it notes what it is asked to do.

The scripts of the packages, dpkg, rpm and Debian's helpers are the real ones.
"""

from __future__ import annotations

from tests.package.chroot import Chroot

CALLS = "/var/log/systemctl-calls"
FAILED = "/run/ebbgated-has-failed"
STAND_IN = f"""#!/bin/sh
case " $* " in
*" is-enabled "*) echo enabled ;;
*" is-failed "*) [ -e {FAILED} ] ;;
*" is-active "*) ;;
*) echo "$*" >>{CALLS} ;;
esac
"""


class Systemctl:
    """Takes the place of systemctl; every unit is enabled and active."""

    def __init__(self, system: Chroot) -> None:
        self._system = system
        system.path("/run/systemd/system").mkdir(parents=True)
        system.put("/usr/bin/systemctl", STAND_IN, 0o755)

    def fail_the_daemon(self) -> None:
        """Answer from now on that ebbgated has failed."""
        self._system.put(FAILED, "")

    def taken(self) -> list[str]:
        """Return what it was asked to do since the last time."""
        path = self._system.path(CALLS)
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        calls = ([word for word in line.split() if not word.startswith("-")] for line in lines)
        return [" ".join(words) for words in calls]

    def taken_for_daemon(self) -> list[str]:
        """Return the same for ebbgated alone, without its name."""
        calls = (call.split() for call in self.taken())
        return [words[0] for words in calls if "ebbgated.service" in words]
