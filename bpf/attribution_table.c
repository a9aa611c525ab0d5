// SPDX-License-Identifier: GPL-2.0-only
#include "attribution_table.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* By misses, then by owner, so that equal ones have an order. */
static int more(const void *one, const void *other)
{
	const struct attributed *a = one, *b = other;
	uint64_t misses = attributed_misses(a), fewer = attributed_misses(b);

	if (misses != fewer)
		return misses > fewer ? -1 : 1;
	if (a->dev != b->dev)
		return a->dev > b->dev ? 1 : -1;
	return (a->id > b->id) - (a->id < b->id);
}

static struct attributed of_entry(const struct attribution_entry *entry)
{
	return (struct attributed){
		.id = entry->id == ATTRIBUTION_UNKNOWN ? 0 : entry->id,
		.dev = entry->dev,
		.reads = entry->misses[0],
		.writes = entry->misses[1],
	};
}

/* Adds the misses to those of the same owner, if the set had it before. */
static bool added(struct attributed *first, const struct attributed *end,
		  const struct attributed *a)
{
	for (; first < end; first++)
		if (first->id == a->id && first->dev == a->dev) {
			first->reads += a->reads;
			first->writes += a->writes;
			return true;
		}
	return false;
}

size_t attribution_take(struct attribution_set *sets, size_t n_sets, struct attributed *found)
{
	struct attributed *next = found;

	for (struct attribution_set *set = sets; set < sets + n_sets; set++) {
		struct attributed *first = next;

		for (int way = 0; way < ATTRIBUTION_WAYS; way++) {
			struct attributed a = of_entry(&set->way[way]);

			if (attributed_misses(&a) && !added(first, next, &a))
				*next++ = a;
		}
	}
	memset(sets, 0, n_sets * sizeof(*sets));
	qsort(found, next - found, sizeof(*found), more);
	return next - found;
}
