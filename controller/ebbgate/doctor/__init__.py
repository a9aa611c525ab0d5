# SPDX-License-Identifier: GPL-2.0-only
"""Checks machine and volumes and gives advice. It changes nothing."""
