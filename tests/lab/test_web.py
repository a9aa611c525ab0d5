# SPDX-License-Identifier: GPL-2.0-only
"""The dashboard in a real browser, of a real daemon that tunes a real bcache under a load."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.bench import web
from tests.bench.gap_drain import Pieces, fill_of
from tests.bench.product import REPO, Product
from tests.lab import fio, host
from tests.lab.conftest import without_lab
from tests.lab.errors import CommandFailed, LabError, NoLab
from tests.lab.guest import Guest
from tests.lab.session import Session
from tests.lab.stack import BcacheStack

BROWSER = REPO / "tests" / "browser"
TIMEOUT_S = 900
