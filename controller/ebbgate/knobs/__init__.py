# SPDX-License-Identifier: GPL-2.0-only
"""The catalogue of kernel knobs: names, forms, bounds, what resets them."""
