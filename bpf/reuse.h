/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Samples references to blocks, for reuse distances: of 4 KiB blocks one in each chunk of 1 MiB, at
 * a place that a hash of the chunk gives. All references to a block are sampled or none, every part
 * of a volume has its share, and a request is tested once for each chunk that it touches. Pure.
 */
#ifndef EBBGATE_REUSE_H
#define EBBGATE_REUSE_H

#include "hist.h"

#define REUSE_BLOCK_SECTORS 8
#define REUSE_CHUNK_LOG2 8
/* Chunks of a request that are tested: a bio has at most 256 pages, unless these are huge. */
#define REUSE_CHUNKS_MAX 4

/* For each CPU and volume: 64 MiB of requests in each MiB, between two ticks, if all are new. */
#define REUSE_SLOTS 128

struct reuse_ref {
	unsigned long long ns;
	unsigned long long ref; /* the block, times 2, plus 1 for a write; never 0 */
};

/* One CPU writes it, the loader reads it; if the loader is late, the oldest are overwritten. */
struct reuse_ring {
	unsigned long long next;  /* references so far */
	unsigned long long taken; /* of these the loader has read; only it writes this */
	struct reuse_ref at[REUSE_SLOTS];
};

/* The sampled block of a chunk. Fibonacci hashing: it spreads neighbours over all places. */
static __always_inline unsigned long long reuse_block(unsigned long long chunk)
{
	unsigned long long hash = (chunk + 1) * 0x9E3779B97F4A7C15ULL;

	return chunk << REUSE_CHUNK_LOG2 | hash >> (64 - REUSE_CHUNK_LOG2);
}

static __always_inline void reuse_put(struct reuse_ring *ring, unsigned long long ref,
				      unsigned long long ns)
{
	struct reuse_ref *slot = &ring->at[ring->next & (REUSE_SLOTS - 1)];

	slot->ns = ns;
	slot->ref = ref;
	/* The loader must not find the slot before it is written. */
	asm volatile("" ::: "memory");
	ring->next++;
}

/* Takes a request; *lost counts those of which not all chunks were tested. */
static __always_inline void reuse_request(struct reuse_ring *ring, unsigned long long sector,
					  unsigned int sectors, unsigned int write,
					  unsigned long long ns, unsigned long long *lost)
{
	unsigned long long first = sector / REUSE_BLOCK_SECTORS;
	unsigned long long last = (sector + sectors - 1) / REUSE_BLOCK_SECTORS;
	unsigned long long chunk = first >> REUSE_CHUNK_LOG2;

	for (int i = 0; i < REUSE_CHUNKS_MAX; i++, chunk++) {
		unsigned long long block = reuse_block(chunk);

		if (block - first <= last - first)
			reuse_put(ring, block << 1 | write, ns);
		if (chunk == last >> REUSE_CHUNK_LOG2)
			return;
	}
	++*lost;
}

#endif
