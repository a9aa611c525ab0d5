# SPDX-License-Identifier: GPL-2.0-only
"""One volume's loop: records in, policy asked, knobs driven."""
