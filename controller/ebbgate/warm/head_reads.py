# SPDX-License-Identifier: GPL-2.0-only
"""Reads single pages of volumes in the worker process, so that a disk's heads go there.

No volume stays open between two reads. What is read is thrown away.
I/O: block devices; JSON lines on stdin and stdout.

    in   {"heads": true}, then for each read {"device", "devno", "offset"}
    out  {"event": "read", "device"}, or {"event": "failed", "device", "text"}
"""

from __future__ import annotations

import json
import mmap
import os
import stat
from contextlib import closing
from io import FileIO
from typing import Any

from ebbgate.errors import Unavailable
from ebbgate.model.heat import HEAD_READ_BYTES
from ebbgate.warm.reader import send_event


def serve(commands: FileIO) -> None:
    """Read one page after the other until the daemon ends."""
    while line := commands.readline():
        request = json.loads(line)
        try:
            _read_page(request)
            send_event("read", device=request["device"])
        except Unavailable as error:
            send_event("failed", device=request["device"], text=error.message)
        except OSError as error:
            if isinstance(error, BrokenPipeError | ConnectionResetError):
                raise
            send_event("failed", device=request["device"], text=error.strerror or str(error))


def _read_page(request: dict[str, Any]) -> None:
    """Read past the page cache, so that the disk is reached. Raises OSError and Unavailable."""
    handle = os.open(request["device"], os.O_RDONLY | os.O_DIRECT | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(handle)
        number = [os.major(found.st_rdev), os.minor(found.st_rdev)]
        if not stat.S_ISBLK(found.st_mode) or number != request["devno"]:
            raise Unavailable(f"{request['device']} is another device now")
        # The kernel reads to whole pages only.
        with closing(mmap.mmap(-1, HEAD_READ_BYTES)) as page:
            os.preadv(handle, [page], request["offset"])
    finally:
        os.close(handle)
