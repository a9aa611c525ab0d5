# SPDX-License-Identifier: GPL-2.0-only
"""Golden replays: recorded probe streams and the decisions that were reviewed for them."""
