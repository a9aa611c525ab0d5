# SPDX-License-Identifier: GPL-2.0-only
"""The data types of ebbgate: measurements, decisions and their outcomes. Pure."""
