# SPDX-License-Identifier: GPL-2.0-only
"""What works on this machine, what it costs, and what stands in the way. It changes nothing."""
