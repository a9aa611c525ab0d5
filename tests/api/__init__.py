# SPDX-License-Identifier: GPL-2.0-only
"""The whole OpenAPI document, tried out on both sets of packages by schemathesis."""
