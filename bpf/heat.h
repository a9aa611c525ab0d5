/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counts users' requests that missed the cache, by chunks of 1 MiB, in a table of a volume. Pure:
 * no helpers, no maps; builds with clang -target bpf and with cc.
 *
 * An entry is one word with the chunk and its counts, which changes as a whole: a program on
 * another CPU, or the loader that takes it, can make a count fail, but none goes to another chunk.
 */
#ifndef EBBGATE_HEAT_H
#define EBBGATE_HEAT_H

#include "hist.h"

#define HEAT_CHUNK_SECTORS_LOG2 11

/*
 * 8192 sets of two, 128 KiB. The loader takes all entries every 10 s, in which a disk makes 1,500
 * random requests: of so many chunks one in 200 has no room, of 3,000 one in 50. Hot ones come
 * early.
 */
#define HEAT_SET_BITS 13
#define HEAT_WAYS 2
#define HEAT_ENTRIES (HEAT_WAYS << HEAT_SET_BITS)

/*
 * The low bits of an entry count, each kind with a spare bit on top: a chunk with 32,768
 * synchronous reads, or half as many of another kind, is full. Above is what its place does not
 * tell of the chunk, enough for volumes of 2 PiB. An empty entry is 0.
 */
#define HEAT_OTHER_READ_BIT 16
#define HEAT_WRITE_BIT 31
#define HEAT_TAG_BIT 46
#define HEAT_FULL (1ULL << 15 | 1ULL << 30 | 1ULL << 45)
#define HEAT_CHUNKS_MAX (1ULL << (HEAT_SET_BITS + 64 - HEAT_TAG_BIT))

/* One request of a kind. */
#define HEAT_SYNC_READ 1ULL
#define HEAT_OTHER_READ (1ULL << HEAT_OTHER_READ_BIT)
#define HEAT_WRITE (1ULL << HEAT_WRITE_BIT)

/*
 * The kernel marks each read of the page cache as readahead, with the pages that a task waits for.
 * A random one is short, because it has only these.
 */
#define HEAT_WAITED_BYTES_MAX 16384

struct heat_set {
	unsigned long long way[HEAT_WAYS];
};

struct heat_table {
	struct heat_set set[1 << HEAT_SET_BITS];
};

/* Mixes the low bits of a chunk with its tag; applied again, it gives them back. */
static __always_inline unsigned long long heat_mix(unsigned long long low, unsigned long long tag)
{
	return (low ^ tag) & ((1 << HEAT_SET_BITS) - 1);
}

/* Whether an entry belongs to another chunk. */
static __always_inline int heat_taken(unsigned long long entry, unsigned long long tag)
{
	return UNLIKELY(entry >> HEAT_TAG_BIT != tag) && entry;
}

/*
 * Counts a request of a kind at a sector of the volume; returns 0 unless there is no room. Without
 * `atomics` (old kernels) two programs at the same time can lose a count, and entries that the
 * loader takes at this instant can count twice.
 */
static __always_inline unsigned long long heat_count(struct heat_table *table,
						     unsigned long long sector,
						     unsigned long long kind, int atomics)
{
	unsigned long long chunk = sector >> HEAT_CHUNK_SECTORS_LOG2;
	unsigned long long tag = chunk >> HEAT_SET_BITS;
	unsigned long long *way = table->set[heat_mix(chunk, tag)].way;
	unsigned long long found = *(volatile unsigned long long *)way, more;

	if (heat_taken(found, tag)) {
		found = *(volatile unsigned long long *)++way;
		if (heat_taken(found, tag))
			return 1;
	}
	if (UNLIKELY(found & HEAT_FULL))
		return 1;
	more = (found | tag << HEAT_TAG_BIT) + kind;
	if (atomics)
		return __sync_val_compare_and_swap(way, found, more) ^ found;
	*(volatile unsigned long long *)way = more;
	return 0;
}

#endif
