# SPDX-License-Identifier: GPL-2.0-only
"""Requests of people: their protocol, their checks, and the overrides that they make."""
