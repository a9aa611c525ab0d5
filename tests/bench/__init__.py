# SPDX-License-Identifier: GPL-2.0-only
"""Every figure that the project claims is a scenario here; `make bench` lists them."""
