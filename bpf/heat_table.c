// SPDX-License-Identifier: GPL-2.0-only
#include "heat_table.h"

#include <stdlib.h>

static uint32_t bits(uint64_t entry, int from, int end)
{
	return entry >> from & ((1ULL << (end - from)) - 1);
}

static struct heat_chunk chunk_of(uint64_t entry, uint64_t set)
{
	uint64_t tag = entry >> HEAT_TAG_BIT;

	return (struct heat_chunk){
		.chunk = tag << HEAT_SET_BITS | heat_mix(set, tag),
		.sync_reads = bits(entry, 0, HEAT_OTHER_READ_BIT),
		.other_reads = bits(entry, HEAT_OTHER_READ_BIT, HEAT_WRITE_BIT),
		.writes = bits(entry, HEAT_WRITE_BIT, HEAT_TAG_BIT),
	};
}

/* By misses, then by place, so that equal ones have an order. */
static int hotter(const void *one, const void *other)
{
	const struct heat_chunk *a = one, *b = other;
	uint64_t more = heat_misses(a), less = heat_misses(b);

	if (more != less)
		return more > less ? -1 : 1;
	return (a->chunk > b->chunk) - (a->chunk < b->chunk);
}

size_t heat_take(struct heat_table *table, struct heat_chunk chunks[HEAT_ENTRIES])
{
	size_t n = 0;

	for (uint64_t set = 0; set < 1 << HEAT_SET_BITS; set++)
		for (int way = 0; way < HEAT_WAYS; way++) {
			unsigned long long *entry = &table->set[set].way[way];

			if (__atomic_load_n(entry, __ATOMIC_RELAXED))
				chunks[n++] = chunk_of(
					__atomic_exchange_n(entry, 0, __ATOMIC_RELAXED), set);
		}
	qsort(chunks, n, sizeof(*chunks), hotter);
	return n;
}
