# SPDX-License-Identifier: GPL-2.0-only
"""The catalogue of kernel knobs: one row each, and what a person may set of them. Pure."""
