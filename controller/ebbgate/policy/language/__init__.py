# SPDX-License-Identifier: GPL-2.0-only
"""The policy language: reads, checks and compiles policy files. Pure.

yaml_events      reads text into nodes with positions; refuses most of YAML
diagnostic       errors with their positions
value_schemas    schemas of single values and lists
object_schema    schema of mappings
strategy_schema  schemas of strategies and times of the day
condition        schema of a rule's conditions
params           parameters of the strategies
settings         settings of rules and limits
grammar          the whole language as one table of schemas
document         a policy as written in a file
parse            reads a file into a document
link             resolves includes and schedules
choose           chooses the document for a volume and a time
compile          compiles a document for a kind of cache
reference        prints the tables of policies/README.md, and policies/schema.json
"""
