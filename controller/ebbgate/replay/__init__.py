# SPDX-License-Identifier: GPL-2.0-only
"""What a policy would have done: on a recording, or on the history."""
