/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counts users' requests that missed the cache by who made them: by cgroup, and by inode. Pure: no
 * helpers, no maps; builds with clang -target bpf and with cc.
 *
 * A volume has two sides. Programs count in one, and the loader takes the other, in which none
 * counts any more. So an entry gets its owner once, and keeps it until the loader empties it.
 */
#ifndef EBBGATE_ATTRIBUTION_H
#define EBBGATE_ATTRIBUTION_H

#include "hist.h"

/* In the 10 s of a side: 256 cgroups, and 1,024 files, of which four fit in a set. */
#define ATTRIBUTION_CGROUP_BITS 6
#define ATTRIBUTION_INODE_BITS 8
#define ATTRIBUTION_WAYS 4
#define ATTRIBUTION_SIDES 2

/* Who is not known is counted, too. No id of a cgroup and no number of an inode is 0 or this. */
#define ATTRIBUTION_UNKNOWN ~0ULL

struct attribution_entry {
	unsigned long long id;	/* of a cgroup or an inode; 0: empty */
	unsigned int dev;	/* of the inode's filesystem, 0 for a cgroup */
	unsigned int misses[2]; /* reads, writes */
	unsigned int pad;
};
_Static_assert(sizeof(struct attribution_entry) == 24, "hole in attribution_entry");

struct attribution_set {
	struct attribution_entry way[ATTRIBUTION_WAYS];
};

struct attribution_table {
	struct attribution_set cgroup[1 << ATTRIBUTION_CGROUP_BITS];
	struct attribution_set inode[1 << ATTRIBUTION_INODE_BITS];
};

struct attribution {
	struct attribution_table side[ATTRIBUTION_SIDES];
};

/* The set of an owner, of 2^bits. */
static __always_inline unsigned long long attribution_place(unsigned long long id, unsigned int dev,
							    int bits)
{
	return (id ^ dev) * 0x9E3779B97F4A7C15ULL >> (64 - bits);
}

/*
 * Whether an entry is this owner's, or becomes it. Another program may see an owner before its
 * device: it goes to the next entry then, and the loader adds up the two.
 */
static __always_inline int attribution_owns(struct attribution_entry *entry, unsigned long long id,
					    unsigned int dev, int atomics)
{
	unsigned long long found = *(volatile unsigned long long *)&entry->id;

	if (UNLIKELY(!found)) {
		if (atomics)
			found = __sync_val_compare_and_swap(&entry->id, 0, id);
		else
			*(volatile unsigned long long *)&entry->id = id;
		if (!found) {
			*(volatile unsigned int *)&entry->dev = dev;
			return 1;
		}
	}
	return found == id && *(volatile unsigned int *)&entry->dev == dev;
}

/*
 * Counts a request of an owner in its set; returns 0 unless there is no room. Without `atomics`
 * (old kernels) two programs that begin an entry at the same time can count for one owner.
 */
static __always_inline int attribution_count(struct attribution_set *set, unsigned long long id,
					     unsigned int dev, unsigned int direction, int atomics)
{
	struct attribution_entry *entry = set->way;

	UNROLL
	for (int way = 0; way < ATTRIBUTION_WAYS; way++, entry++)
		if (attribution_owns(entry, id, dev, atomics)) {
			__sync_fetch_and_add(&entry->misses[direction], 1);
			return 0;
		}
	return 1;
}

#endif
