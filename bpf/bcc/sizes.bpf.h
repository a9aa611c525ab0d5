/* SPDX-License-Identifier: GPL-2.0-only */
/* The maps were made with these sizes: by the loader's structs, or by those of the programs. */
_Static_assert(sizeof(struct eb_cpu) == COUNTERS_BYTES, "");
_Static_assert(sizeof(heat) == HEAT_BYTES, "");
_Static_assert(sizeof(shared) == SHARED_BYTES, "");
_Static_assert(sizeof(streams) == STREAMS_BYTES, "");
_Static_assert(sizeof(joins) == JOINS_BYTES, "");
_Static_assert(sizeof(submitters) == SUBMITTERS_BYTES, "");
