/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Idle gaps and time stamps. Pure: no helpers, no maps; builds with clang -target
 * bpf and with cc.
 */
#ifndef EBBGATE_IDLE_H
#define EBBGATE_IDLE_H

#include "hist.h"

/*
 * All CPUs share the last activity of a volume, so it is written only if it is older than this: at
 * most 10,000 writes a second under any load.
 */
#define IDLE_GRAIN_NS 100000ULL

/* Shorter gaps are not counted, because the grain makes them inexact. */
#define IDLE_GAP_MIN_NS 1000000ULL

/*
 * A stamp is 51 bits of monotonic ns; the kernel keeps the size of the bio in the 13 bits
 * above (bio->bi_issue.value). A full clock value is a valid stamp.
 */
#define STAMP_BITS 51
#define STAMP_HIGH_BITS (64 - STAMP_BITS)
#define STAMP_MASK ((1ULL << STAMP_BITS) - 1)
#define STAMP_SIZE_MASK 0xfffULL

/* Time from a stamp to now; both may have wrapped (every 26 days). */
static __always_inline unsigned long long stamp_age_ns(unsigned long long stamp,
						       unsigned long long now_ns)
{
	return (now_ns - stamp) & STAMP_MASK;
}

/* The full time of a stamp that lies within 13 days of ref_ns, before or after. */
static __always_inline unsigned long long stamp_full_ns(unsigned long long stamp,
							unsigned long long ref_ns)
{
	long long ahead = (stamp - ref_ns) << STAMP_HIGH_BITS;

	return ref_ns + (ahead >> STAMP_HIGH_BITS);
}

/* Bytes of the bio when it was stamped: exact below 2 MiB, modulo 2 MiB above. */
static __always_inline unsigned int stamp_bytes(unsigned long long stamp)
{
	return ((stamp >> STAMP_BITS) & STAMP_SIZE_MASK) << 9;
}

/*
 * Whether the shared last activity is more than a grain old. The clock of another CPU may lag by as
 * much, so a stamp up to a grain earlier is not stale; any other is.
 */
static __always_inline int idle_stale(unsigned long long last_ns, unsigned long long stamp)
{
	unsigned long long ahead = stamp - last_ns + IDLE_GRAIN_NS;

	return ahead << STAMP_HIGH_BITS > 2 * IDLE_GRAIN_NS << STAMP_HIGH_BITS;
}

/* Length of the gap that an arrival ends; 0 if there is none. */
static __always_inline unsigned long long
idle_gap_ns(unsigned long long last_ns, unsigned long long now_ns, unsigned long long in_flight)
{
	if (in_flight || now_ns <= last_ns || now_ns - last_ns < IDLE_GAP_MIN_NS)
		return 0;
	return now_ns - last_ns;
}

/* Bucket i: gaps of [2^i, 2^(i+1)) us. A gap may be longer than hist_us() takes. */
static __always_inline unsigned int idle_gap_bucket(unsigned long long gap_ns)
{
	return hist_log2_bucket(gap_ns / 1000);
}

#endif
