/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Idle gaps and time stamps. Pure: no helpers, no maps; builds with clang -target
 * bpf and with cc.
 */
#ifndef EBBGATE_IDLE_H
#define EBBGATE_IDLE_H

#include "hist.h"

/*
 * The last activity of a volume is shared by all CPUs, so it is written only when
 * it is stale by more than this: at most 10,000 writes a second under any load.
 */
#define IDLE_GRAIN_NS 100000ULL

/* Gaps shorter than this are not counted: the grain would blur them. */
#define IDLE_GAP_MIN_NS 1000000ULL

/* Bits of bio->bi_issue.value that hold monotonic ns (the rest holds the size). */
#define STAMP_BITS 51
#define STAMP_MASK ((1ULL << STAMP_BITS) - 1)

/* Time from a 51-bit stamp to now; both may have wrapped (every 26 days). */
static __always_inline unsigned long long stamp_age_ns(unsigned long long stamp,
						       unsigned long long now_ns)
{
	return (now_ns - stamp) & STAMP_MASK;
}

/* The full time of a stamp that lies within 13 days of ref_ns, before or after. */
static __always_inline unsigned long long stamp_full_ns(unsigned long long stamp,
							unsigned long long ref_ns)
{
	unsigned long long ahead = (stamp - ref_ns) & STAMP_MASK;

	if (ahead >> (STAMP_BITS - 1))
		return ref_ns - (STAMP_MASK + 1 - ahead);
	return ref_ns + ahead;
}

/* Is the shared last activity stale? A clock of another CPU may lag: not stale. */
static __always_inline int idle_stale(unsigned long long last_ns, unsigned long long now_ns)
{
	return now_ns > last_ns && now_ns - last_ns > IDLE_GRAIN_NS;
}

/* Length of the gap that an arrival ends, 0 when it is none. */
static __always_inline unsigned long long
idle_gap_ns(unsigned long long last_ns, unsigned long long now_ns, unsigned long long in_flight)
{
	if (in_flight || now_ns <= last_ns || now_ns - last_ns < IDLE_GAP_MIN_NS)
		return 0;
	return now_ns - last_ns;
}

/* Bucket i: gaps of [2^i, 2^(i+1)) us. */
static __always_inline unsigned int idle_gap_bucket(unsigned long long gap_ns)
{
	return hist_log2_bucket(hist_us(gap_ns));
}

#endif
