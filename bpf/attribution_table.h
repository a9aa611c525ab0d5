/* SPDX-License-Identifier: GPL-2.0-only */
/* Takes the misses of a volume by cgroup or by inode out of one side of its table. */
#ifndef EBBGATE_ATTRIBUTION_TABLE_H
#define EBBGATE_ATTRIBUTION_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "attribution.h"

#define ATTRIBUTION_CGROUPS (ATTRIBUTION_WAYS << ATTRIBUTION_CGROUP_BITS)
#define ATTRIBUTION_INODES (ATTRIBUTION_WAYS << ATTRIBUTION_INODE_BITS)

/* Misses of one owner; id and dev are 0 for all that are of no known one. */
struct attributed {
	uint64_t id;
	uint32_t dev;
	uint32_t reads, writes;
};

static inline uint64_t attributed_misses(const struct attributed *a)
{
	return (uint64_t)a->reads + a->writes;
}

/*
 * Empties the sets; returns how many owners they had, those with the most misses first. `found` has
 * room for all entries.
 */
size_t attribution_take(struct attribution_set *sets, size_t n_sets, struct attributed *found);

#endif
