# SPDX-License-Identifier: GPL-2.0-only
"""What a guest was doing when a test failed: who runs, who waits in the kernel and where.

I/O: through a Session.
"""

from __future__ import annotations

from tests.lab.errors import LabError
from tests.lab.session import Session

_TIMEOUT_S = 30

# Sleeping kernel threads are left out; running and unkillable ones are shown with their stack.
_SCRIPT = r"""
cat /proc/loadavg
ps -eLo pid,tid,stat,psr,time,wchan:24,args --sort=-time |
    awk 'NR == 1 || $3 ~ /^[RD]/' | cut -c1-150
for task in /proc/[0-9]*/task/[0-9]*; do
    read -r state < <(awk '{ sub(/.*\) /, ""); print $1 }' "$task/stat" 2>/dev/null) || continue
    [ "$state" = D ] || continue
    echo "--- ${task##*/} $(cat "$task/comm")"
    cat "$task/stack"
done
echo '--- the last messages of the kernel'
dmesg | tail -n 15
"""


def of(session: Session) -> str:
    """The guest's tasks and last messages, as text; says so if the guest does not answer."""
    try:
        return session.run(_SCRIPT, timeout_s=_TIMEOUT_S).stdout
    except (LabError, OSError) as error:
        return f"the guest does not answer: {error}"
