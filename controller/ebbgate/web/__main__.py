# SPDX-License-Identifier: GPL-2.0-only
"""`python -m ebbgate.web`."""

import sys

from ebbgate.web.command import main

if __name__ == "__main__":
    sys.exit(main())
