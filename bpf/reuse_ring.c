// SPDX-License-Identifier: GPL-2.0-only
#include "reuse_ring.h"

#include "idle.h"

#include <stdlib.h>
#include <string.h>

static uint64_t later(uint64_t one, uint64_t other)
{
	return one > other ? one : other;
}

/* The oldest reference in the ring, but for the slot that is perhaps being written. */
static uint64_t oldest(uint64_t next)
{
	return next >= REUSE_SLOTS ? next - (REUSE_SLOTS - 1) : 0;
}

size_t reuse_take(struct reuse_ring *ring, struct reuse_ref *refs, size_t room, uint64_t *lost)
{
	uint64_t next = __atomic_load_n(&ring->next, __ATOMIC_ACQUIRE);
	uint64_t from = later(ring->taken, oldest(next));
	uint64_t end = next - from > room ? from + room : next;
	uint64_t valid;

	for (uint64_t i = from; i < end; i++)
		refs[i - from] = ring->at[i % REUSE_SLOTS];
	/* The first may have been overwritten meanwhile. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	valid = later(from, oldest(__atomic_load_n(&ring->next, __ATOMIC_RELAXED)));
	if (valid > end)
		valid = end;
	memmove(refs, refs + (valid - from), (end - valid) * sizeof(*refs));
	*lost += next - ring->taken - (end - valid);
	ring->taken = next;
	return end - valid;
}

static int by_time(const void *one, const void *other)
{
	uint64_t a = ((const struct reuse_ref *)one)->ns;
	uint64_t b = ((const struct reuse_ref *)other)->ns;
	/* Above the time, a stamp has the size of the bio. */
	int64_t later = (int64_t)((a - b) << STAMP_HIGH_BITS);

	return (later > 0) - (later < 0);
}

void reuse_sort(struct reuse_ref *refs, size_t n)
{
	qsort(refs, n, sizeof(*refs), by_time);
}
