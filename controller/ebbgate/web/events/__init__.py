# SPDX-License-Identifier: GPL-2.0-only
"""Live events for browsers: what changed, who gets it, and from where they go on."""
