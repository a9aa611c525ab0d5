# SPDX-License-Identifier: GPL-2.0-only
"""All volumes on one event loop, and what people ask of them."""
