/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sequential streams, many at a time. Pure: no helpers, no maps; builds with
 * clang -target bpf and with cc.
 *
 * A stream is known by the sector at which its next request would start. The table is a
 * set-associative hash of that sector: a request reads one cache line to find its stream and
 * writes another, however many streams are interleaved, and takes no lock. A position is entered
 * once and found once, so the oldest entry of a set is also the least recently used one; entries
 * move down as new ones come. Two CPUs that use one set at the same time can lose or mix run
 * lengths but cannot corrupt memory.
 */
#ifndef EBBGATE_STREAM_H
#define EBBGATE_STREAM_H

#include "hist.h"
#include "idle.h"

/*
 * 512 sets of 4: 64 interleaved streams lose one in ten million requests, and a stream survives
 * about a thousand random requests between two of its own.
 */
#define STREAM_SET_BITS 9
#define STREAM_SETS (1 << STREAM_SET_BITS)
#define STREAM_WAYS 4

/* Time in units of 2^20 ns (1.05 ms), modulo 2^31 (26 days). */
#define STREAM_TICK_SHIFT 20
#define STREAM_TICK_MASK 0x7fffffffU
/* As in bcache (RECENT_IO), whose decisions are to be predicted: 5 s. */
#define STREAM_EXPIRE_TICKS (5000000000ULL >> STREAM_TICK_SHIFT)

#define STREAM_RUN_MAX 0x7fffffffU
/* A run of 256 KiB or more that is pushed out is a loss; shorter ones may be chance. */
#define STREAM_LOSS_SECTORS 512

struct stream {
	unsigned long long next_sector;
	unsigned int run; /* sectors so far; 0: empty, or continued elsewhere */
	unsigned int seen_tick;
};

struct stream_set {
	struct stream way[STREAM_WAYS]; /* newest first */
} __attribute__((aligned(64)));

struct stream_table {
	struct stream_set set[STREAM_SETS];
};

/* The tick of a stamp or of a full clock value. */
static __always_inline unsigned int stream_tick(unsigned long long stamp)
{
	return (stamp << STAMP_HIGH_BITS) >> (STAMP_HIGH_BITS + STREAM_TICK_SHIFT);
}

static __always_inline struct stream_set *stream_set_of(struct stream_table *table,
							unsigned long long sector)
{
	return &table->set[(sector * 0x9E3779B97F4A7C15ULL) >> (64 - STREAM_SET_BITS)];
}

static __always_inline int stream_live(const struct stream *s, unsigned int tick)
{
	return ((tick - s->seen_tick) & STREAM_TICK_MASK) <= STREAM_EXPIRE_TICKS;
}

/* Removes and returns the run that a request at this sector continues; 0: it begins one. */
static __always_inline unsigned int stream_take(struct stream_set *set, unsigned long long sector,
						unsigned int tick)
{
	struct stream *way = set->way;

	OPAQUE(way);
	UNROLL
	for (int i = 0; i < STREAM_WAYS; i++) {
		unsigned int run;

		if (way[i].next_sector != sector)
			continue;
		run = stream_live(&way[i], tick) ? way[i].run : 0;
		way[i].run = 0;
		return run;
	}
	return 0;
}

/* Enters a position; returns 1 if a live stream was pushed out. */
static __always_inline int stream_put(struct stream_set *set, struct stream new)
{
	struct stream *way = set->way;
	int lost = 0;

	OPAQUE(way);
	/* Repeated writes to one place must not fill the set with copies of it. */
	if (way[0].next_sector != new.next_sector) {
		if (UNLIKELY(way[3].run >= STREAM_LOSS_SECTORS))
			lost = stream_live(&way[3], new.seen_tick);
		way[3] = way[2];
		way[2] = way[1];
		way[1] = way[0];
	}
	way[0] = new;
	return lost;
}

/*
 * Counts one request; returns its run length in sectors, itself included. Increments *lost if a
 * live stream was pushed out.
 */
static __always_inline unsigned int stream_advance(struct stream_table *table,
						   unsigned long long sector, unsigned int sectors,
						   unsigned int tick, unsigned long long *lost)
{
	struct stream next = { .next_sector = sector + sectors, .seen_tick = tick };
	unsigned int run;

	OPAQUE(table);
	run = stream_take(stream_set_of(table, sector), sector, tick) + sectors;
	next.run = run < STREAM_RUN_MAX ? run : STREAM_RUN_MAX;
	if (UNLIKELY(stream_put(stream_set_of(table, next.next_sector), next)))
		(*lost)++;
	return next.run;
}

/* Bucket i: runs of [512 * 2^i, 512 * 2^(i+1)) bytes, from the run in sectors. */
static __always_inline unsigned int stream_run_bucket(unsigned int run_sectors)
{
	return hist_log2(run_sectors);
}

#endif
