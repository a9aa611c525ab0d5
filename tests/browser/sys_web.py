# SPDX-License-Identifier: GPL-2.0-only
"""The real ebbgate-web over a /sys of files: python -m tests.browser.sys_web FOLDER [options...]

I/O: makes a /sys below FOLDER with one volume that needs advice, because the test machine has no
cache; the rest is the real server.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from unittest.mock import patch

from ebbgate.kernel.sysfs import Sysfs
from ebbgate.web import app, command
from tests.fake_sysfs import fake_bcache


def advised(folder: Path) -> Sysfs:
    """Make bcache0 with advice of every severity, with and without commands."""
    fake = fake_bcache(folder)
    fake.write("/sys/block/bcache0/bcache/sequential_cutoff", "0")
    fake.write("/sys/block/vda/queue/scheduler", "mq-deadline [none]")
    fake.write("/sys/block/vda/device/queue_depth", "256")
    fake.write("/sys/block/vda/bcache/io_errors", "2")
    fake.write("/sys/block/vdb/bcache/discard", "1")
    return fake.sysfs


def main() -> int:
    """Run the server until it ends."""
    sysfs = advised(Path(sys.argv[1]))
    with patch.object(app, "Api", partial(app.Api, sysfs=sysfs)):
        return command.main(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
