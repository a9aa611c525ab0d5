# SPDX-License-Identifier: GPL-2.0-only
"""The policy language: reads, checks and compiles policy files. Pure.

yaml_events   text to nodes with places, everything odd refused
shapes        what a value may look like: reads a node, and writes JSON Schema
grammar       the whole language as one table of shapes
parse         a document out of the text of a file
link          documents together: includes, overlays, cycles
choose        which document is for a volume, which overlay for this hour
compile       a document as the policy that policy.evaluate runs
schema        JSON Schema, and the tables of policies/README.md
"""
