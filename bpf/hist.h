/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Histogram buckets. Pure: no helpers, no maps; builds with clang -target bpf and with cc.
 */
#ifndef EBBGATE_HIST_H
#define EBBGATE_HIST_H

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/* Loops of a few steps cost less unrolled; other compilers need no hint. */
#ifdef __bpf__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL
#endif

/* Powers of two from the unit up: enough for 2^31 units. */
#define HIST_LOG2_BUCKETS 32

/*
 * Latency: exact below 4 us, then four sub-buckets an octave (25 % wide or less).
 * 108 buckets reach 2^28 us = 268 s; the last takes everything above.
 */
#define HIST_LAT_BUCKETS 108
#define HIST_LAT_SUB_BITS 2

/* floor(log2(v)), and 0 for 0. BPF has no count-leading-zeros. */
static __always_inline unsigned int hist_log2(unsigned long long v)
{
	unsigned int r = 0;

	if (v >> 32) {
		v >>= 32;
		r += 32;
	}
	if (v >> 16) {
		v >>= 16;
		r += 16;
	}
	if (v >> 8) {
		v >>= 8;
		r += 8;
	}
	if (v >> 4) {
		v >>= 4;
		r += 4;
	}
	if (v >> 2) {
		v >>= 2;
		r += 2;
	}
	return r + (v >> 1 ? 1 : 0);
}

/* Bucket i holds [2^i, 2^(i+1)); 0 is counted in bucket 0. */
static __always_inline unsigned int hist_log2_bucket(unsigned long long v)
{
	unsigned int i = hist_log2(v);

	return i < HIST_LOG2_BUCKETS ? i : HIST_LOG2_BUCKETS - 1;
}

/*
 * ns / 1000 by multiplication: a 64-bit division costs tens of cycles. Exact up
 * to 2 s, and at most 1 us too high above; saturates at 2^40 ns (18 min).
 */
static __always_inline unsigned long long hist_us(unsigned long long ns)
{
	if (ns >> 40)
		ns = 1ULL << 40;
	return ((ns >> 3) * 68719477ULL) >> 33;
}

/*
 * v < 4: bucket v. Else with k = floor(log2(v)): 4 * (k - 1) + the two bits below
 * the leading one. So bucket b >= 4 starts at (4 + b % 4) << (b / 4 - 1).
 */
static __always_inline unsigned int hist_lat_bucket(unsigned long long us)
{
	unsigned int k, b;

	if (us < 4)
		return us;
	if (us >> 28)
		return HIST_LAT_BUCKETS - 1;
	k = hist_log2(us);
	b = 4 * (k - 1) + ((us >> (k - HIST_LAT_SUB_BITS)) & 3);
	return b < HIST_LAT_BUCKETS ? b : HIST_LAT_BUCKETS - 1;
}

/* Lowest value of a latency bucket: what a reader of the record needs. */
static __always_inline unsigned long long hist_lat_floor_us(unsigned int bucket)
{
	if (bucket < 4)
		return bucket;
	return (4ULL + (bucket & 3)) << (bucket / 4 - 1);
}

#endif
