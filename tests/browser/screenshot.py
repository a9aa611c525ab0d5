# SPDX-License-Identifier: GPL-2.0-only
"""Write the README's picture of the dashboard: python -m tests.browser.screenshot

I/O: starts a server over a recorded history and Chromium; writes webui/docs/overview.png.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tests.browser.node import HERE
from tests.browser.stack import live_server
from tests.lab import host
from tests.programs import REPO

PICTURE = REPO / "webui" / "docs" / "overview.png"
_TIMEOUT_S = 180.0


def main() -> None:
    PICTURE.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, live_server(Path(scratch)) as (url, token):
        environment = {
            **os.environ,
            "EBBGATE_URL": url,
            "EBBGATE_TOKEN": token,
            "EBBGATE_ARTEFACTS": scratch,
            "EBBGATE_PICTURE": str(PICTURE),
        }
        host.run(["node", HERE / "screenshot.mjs"], env=environment, timeout_s=_TIMEOUT_S)
    print(f"{PICTURE}: {PICTURE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
