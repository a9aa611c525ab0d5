/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A table of requests in flight, by an id. Pure: no helpers, no maps; builds with clang -target bpf
 * and with cc.
 *
 * The hash has sets of four instead of lists: no lock, no allocation. A request that is pushed out
 * is counted, and its latency is missing. Programs that use one set at the same time, on two CPUs
 * or because one preempts the other, take different places; without atomic instructions (in v5.12)
 * they can take the same one, and then one request is lost.
 */
#ifndef EBBGATE_JOIN_H
#define EBBGATE_JOIN_H

#include "hist.h"

/* 2048 sets: 512 requests in flight fill a set and one more once in a hundred times. */
#define JOIN_BITS 11
#define JOIN_WAYS 4
/* The low bits of an id are free for what is known of the request. */
#define JOIN_PATH_MASK 7ULL

struct join {
	unsigned long long id;	     /* with the path in its low bits; 0: empty */
	unsigned long long start_ns; /* 0: not known; for bcache always, if bios are stamped */
	unsigned long long bytes;    /* for bcache only of writes */
	unsigned long long volume;   /* of dm: its index and 1; 0: none, as for bcache */
};

/* A set fills two neighbouring cache lines. */
struct join_set {
	struct join way[JOIN_WAYS];
} __attribute__((aligned(128)));

struct join_table {
	struct join_set set[1 << JOIN_BITS];
};

/*
 * What each task submitted last to a volume of dm, which sends a clone of it on, most often in the
 * same task. By task, not by CPU, since the task may sleep in between. A clone has the same array
 * of pages.
 */
#define SUBMITTERS 1024
struct submitter {
	unsigned long long task;
	unsigned long long id;
	unsigned long long pages;
	unsigned long long bytes;
};

static __always_inline struct join_set *join_set_of(struct join_table *table, unsigned long long id)
{
	return &table->set[(id * 0x9E3779B97F4A7C15ULL) >> (64 - JOIN_BITS)];
}

static __always_inline int join_is(const struct join *j, unsigned long long id)
{
	return (j->id ^ id) <= JOIN_PATH_MASK;
}

/* The entry of a request, or NULL. */
static __always_inline struct join *join_find(struct join_table *table, unsigned long long id)
{
	struct join *way = join_set_of(table, id)->way;

	OPAQUE(way);
	for (int i = 0; i < JOIN_WAYS; i++)
		if (join_is(&way[i], id))
			return &way[i];
	return (struct join *)0;
}

/* Takes an empty place; 0 if another program has taken it first. */
static __always_inline int join_take(struct join *place, unsigned long long id, int atomics)
{
	if (atomics)
		return !__sync_val_compare_and_swap(&place->id, 0, id);
	place->id = id;
	return 1;
}

/* Takes a place, and returns the id that was there. */
static __always_inline unsigned long long join_replace(struct join *place, unsigned long long id,
						       int atomics)
{
	unsigned long long before;

	if (atomics)
		return __sync_lock_test_and_set(&place->id, id);
	before = place->id;
	place->id = id;
	return before;
}

/*
 * Enters a request, `path` in the low bits of its id, and returns its entry: its own if it has one,
 * else a free one, else the last. The request that had that one is then lost: *lost is its id, and
 * the rest of the entry still belongs to it. A request can have an entry behind a free place: its
 * own that was entered when the set was full, or that of an earlier request with the same id whose
 * end was not seen.
 */
static __always_inline struct join *join_enter(struct join_table *table, unsigned long long id,
					       unsigned int path, int atomics,
					       unsigned long long *lost)
{
	struct join *way = join_set_of(table, id)->way;
	struct join *own;

	OPAQUE(way);
	/* Most often. */
	if (!(way[0].id | way[1].id | way[2].id | way[3].id) && join_take(way, id | path, atomics))
		return way;
	own = join_find(table, id);
	if (own) {
		own->id = id | path;
		return own;
	}
	for (int i = 0; i < JOIN_WAYS; i++)
		if (!way[i].id && join_take(&way[i], id | path, atomics))
			return &way[i];
	*lost = join_replace(&way[JOIN_WAYS - 1], id | path, atomics);
	return &way[JOIN_WAYS - 1];
}

#endif
