/* SPDX-License-Identifier: GPL-2.0-only */
/* Takes the misses of a volume out of its table. */
#ifndef EBBGATE_HEAT_TABLE_H
#define EBBGATE_HEAT_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "heat.h"

struct heat_chunk {
	uint64_t chunk;
	uint32_t sync_reads, other_reads, writes;
};

static inline uint64_t heat_misses(const struct heat_chunk *c)
{
	return (uint64_t)c->sync_reads + c->other_reads + c->writes;
}

/* Empties the table; returns how many chunks it had, those with the most misses first. */
size_t heat_take(struct heat_table *table, struct heat_chunk chunks[HEAT_ENTRIES]);

#endif
