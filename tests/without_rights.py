# SPDX-License-Identifier: GPL-2.0-only
"""What a user without rights finds. I/O: a child process, which gives its rights up."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from typing import Any, Final

NOBODY: Final = 65534


def without_rights(work: Callable[[], Any]) -> Any:
    """The result of `work` in a child that runs as the user nobody, as JSON has it."""
    readable, writable = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        code = 1
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            os.write(writable, json.dumps(work()).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writable)
    with os.fdopen(readable, "rb") as pipe:
        output = pipe.read()
    _, status = os.waitpid(pid, 0)
    assert status == 0, "the child failed"
    return json.loads(output)
