# SPDX-License-Identifier: GPL-2.0-only
"""The real daemon on a machine of files, to which a recorded load is played; needs no lab."""
