# SPDX-License-Identifier: GPL-2.0-only
"""ebbgate-web with every address of the loopback as a client: python -m tests.api.by_address ...

I/O: the server's own. How often one user may ask is tested elsewhere (tests/unit/web:
test_security.py, test_connections.py); here it would hide everything else behind a 429 (hooks.py).
"""

from __future__ import annotations

import sys
from unittest.mock import patch

from ebbgate.web import command, protocol


def _address(address: str, _uid: int | None) -> str:
    return address


if __name__ == "__main__":
    with patch.object(protocol, "client_name", _address):
        sys.exit(command.main())
