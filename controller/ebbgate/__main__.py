# SPDX-License-Identifier: GPL-2.0-only
"""`python -m ebbgate`: the command line. I/O: all of it."""

from __future__ import annotations

import sys

from ebbgate.cli import main

if __name__ == "__main__":
    sys.exit(main())
