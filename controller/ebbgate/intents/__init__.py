# SPDX-License-Identifier: GPL-2.0-only
"""Requests of people: what may be asked, how it is sent, and what of it lasts."""
