/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sequential streams, many at a time. Pure: no helpers, no maps; builds with
 * clang -target bpf and with cc.
 *
 * A stream is remembered by the sector at which its next request would start. The
 * table is a set-associative hash of that sector: a lookup reads one cache line,
 * however many streams are interleaved, and takes no lock. Two CPUs that meet in
 * one set can lose or mix a run length, never memory.
 */
#ifndef EBBGATE_STREAM_H
#define EBBGATE_STREAM_H

#include "hist.h"

/* 512 sets of 4: two thousand foreign requests may pass between two of a stream. */
#define STREAM_SET_BITS 9
#define STREAM_SETS (1 << STREAM_SET_BITS)
#define STREAM_WAYS 4

/* Time in units of 2^20 ns (1.05 ms): 32 bits wrap after 52 days. */
#define STREAM_TICK_SHIFT 20
/* bcache forgets a stream after 5 s (RECENT_IO slots); so do we, to predict it. */
#define STREAM_EXPIRE_TICKS (5000000000ULL >> STREAM_TICK_SHIFT)

#define STREAM_RUN_MAX 0x7fffffffU
/* Forgetting a run of 256 KiB is a loss; two random neighbours are no stream. */
#define STREAM_LOSS_SECTORS 512

struct stream {
	unsigned long long next_sector; /* 0 with run 0: empty */
	unsigned int run;		/* sectors so far */
	unsigned int seen_tick;
};

struct stream_set {
	struct stream way[STREAM_WAYS];
} __attribute__((aligned(64)));

struct stream_table {
	struct stream_set set[STREAM_SETS];
};

static __always_inline unsigned int stream_hash(unsigned long long sector)
{
	return (sector * 0x9E3779B97F4A7C15ULL) >> (64 - STREAM_SET_BITS);
}

static __always_inline int stream_live(const struct stream *s, unsigned int tick)
{
	return s->run && tick - s->seen_tick <= STREAM_EXPIRE_TICKS;
}

/* The way whose stream a request at this sector continues, or NULL. */
static __always_inline struct stream *stream_find(struct stream_set *set, unsigned long long sector,
						  unsigned int tick)
{
	struct stream *s = set->way;

	UNROLL
	for (int i = 0; i < STREAM_WAYS; i++, s++)
		if (s->next_sector == sector && stream_live(s, tick))
			return s;
	return (struct stream *)0;
}

/* The way to overwrite: the same position, an empty one, else the oldest. */
static __always_inline struct stream *stream_victim(struct stream_set *set, unsigned long long next,
						    unsigned int tick)
{
	struct stream *s = set->way, *old = s;
	unsigned int age = 0;

	UNROLL
	for (int i = 0; i < STREAM_WAYS; i++, s++) {
		if (s->next_sector == next || !s->run)
			return s;
		if (tick - s->seen_tick > age) {
			age = tick - s->seen_tick;
			old = s;
		}
	}
	return old;
}

/*
 * Account one request; returns its run length in sectors, itself included.
 * *lost is incremented when a live stream has to be forgotten.
 */
static __always_inline unsigned int stream_advance(struct stream_table *table,
						   unsigned long long sector, unsigned int sectors,
						   unsigned int tick, unsigned long long *lost)
{
	struct stream *s = stream_find(&table->set[stream_hash(sector)], sector, tick);
	unsigned long long next = sector + sectors;
	unsigned int run = sectors;

	if (s) {
		run += s->run;
		if (run > STREAM_RUN_MAX)
			run = STREAM_RUN_MAX;
		s->run = 0;
	}
	s = stream_victim(&table->set[stream_hash(next)], next, tick);
	if (s->next_sector != next && s->run >= STREAM_LOSS_SECTORS && stream_live(s, tick))
		(*lost)++;
	s->next_sector = next;
	s->run = run;
	s->seen_tick = tick;
	return run;
}

/* Bucket i: runs of [512 * 2^i, 512 * 2^(i+1)) bytes, from the run in sectors. */
static __always_inline unsigned int stream_run_bucket(unsigned int run_sectors)
{
	return hist_log2_bucket(run_sectors);
}

#endif
