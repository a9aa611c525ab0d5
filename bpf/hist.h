/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Histogram buckets. Pure: no helpers, no maps; builds with clang -target bpf and with cc.
 * Uses tables: BPF cannot count leading zeros, and a binary search costs twice as much. bcc loads
 * no constant data, so there HIST_WITHOUT_TABLES is defined.
 */
#ifndef EBBGATE_HIST_H
#define EBBGATE_HIST_H

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/* Short loops cost less when they are unrolled; other compilers need no hint. */
#ifdef __bpf__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL
#endif

/*
 * Hides a value from the optimiser, so that it keeps an address instead of computing it again for
 * each use, or keeps a mask that the verifier needs to see.
 */
#define OPAQUE(value) asm volatile("" : "+r"(value))

/* Keeps what is rare, with the registers that it needs, out of the way of what is not. */
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* Powers of two: enough for 2^31 units. */
#define HIST_LOG2_BUCKETS 32

/*
 * Latency: exact below 4 us, then four sub-buckets an octave (25 % wide or less).
 * 108 buckets reach 2^28 us = 268 s; the last takes everything above.
 */
#define HIST_LAT_BUCKETS 108

#ifndef HIST_WITHOUT_TABLES
/* clang-format off */
/* floor(log2(v)) of a byte, 0 for 0. */
static const unsigned char hist_log2_table[256] = {
	0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3,
	4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4,
	5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5,
	5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5,
	6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6,
	6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6,
	6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6,
	6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6,
	7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
	7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
	7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
	7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
	7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
	7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
	7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
	7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
};

/* Latency bucket of a byte; hist_lat_floor_us() is the inverse. */
static const unsigned char hist_lat_table[256] = {
	0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 9, 10, 10, 11, 11,
	12, 12, 12, 12, 13, 13, 13, 13, 14, 14, 14, 14, 15, 15, 15, 15,
	16, 16, 16, 16, 16, 16, 16, 16, 17, 17, 17, 17, 17, 17, 17, 17,
	18, 18, 18, 18, 18, 18, 18, 18, 19, 19, 19, 19, 19, 19, 19, 19,
	20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20,
	21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21,
	22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22,
	23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23,
	24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24,
	24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24,
	25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25,
	25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25,
	26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26,
	26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26,
	27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27,
	27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27,
};
/* clang-format on */

/* An index into a table of 256. */
static __always_inline unsigned long long hist_byte(unsigned long long v)
{
	OPAQUE(v);
	return v & 255;
}

/* floor(log2(v)), and 0 for 0. */
static __always_inline unsigned int hist_log2(unsigned int v)
{
	if (v < 1U << 8)
		return hist_log2_table[hist_byte(v)];
	if (v < 1U << 16)
		return 8 + hist_log2_table[hist_byte(v >> 8)];
	if (v < 1U << 24)
		return 16 + hist_log2_table[hist_byte(v >> 16)];
	return 24 + hist_log2_table[hist_byte(v >> 24)];
}
#else
/* floor(log2(v)), and 0 for 0. */
static __always_inline unsigned int hist_log2(unsigned int v)
{
	unsigned int log2 = 0;

	UNROLL
	for (unsigned int bits = 16; bits; bits /= 2) {
		if (v >> bits) {
			v >>= bits;
			log2 += bits;
		}
	}
	return log2;
}
#endif

/* Bucket i holds [2^i, 2^(i+1)), the last everything above; 0 is counted in bucket 0. */
static __always_inline unsigned int hist_log2_bucket(unsigned long long v)
{
	return v >> 32 ? HIST_LOG2_BUCKETS - 1 : hist_log2(v);
}

/*
 * ns / 1000 by multiplication: a 64-bit division costs tens of cycles. Exact up
 * to 2 s, at most 5 us too high above; saturates at 2^40 ns (18 min).
 */
static __always_inline unsigned int hist_us(unsigned long long ns)
{
	if (ns >= 1ULL << 40)
		ns = 1ULL << 40;
	return ((ns >> 3) * 68719477ULL) >> 33;
}

#ifndef HIST_WITHOUT_TABLES
/*
 * v < 4: bucket v. Else with k = floor(log2(v)): 4 * (k - 1) + the two bits below the leading one.
 * Division by 2^6 lowers the bucket by 24 as long as 4 or more remains, so steps of six bits bring
 * each value into the table.
 */
static __always_inline unsigned int hist_lat_bucket(unsigned int us)
{
	if (us < 1U << 8)
		return hist_lat_table[hist_byte(us)];
	if (us < 1U << 14)
		return 24 + hist_lat_table[hist_byte(us >> 6)];
	if (us < 1U << 20)
		return 48 + hist_lat_table[hist_byte(us >> 12)];
	if (us < 1U << 26)
		return 72 + hist_lat_table[hist_byte(us >> 18)];
	if (us < 1U << 28)
		return 96 + hist_lat_table[hist_byte(us >> 24)];
	return HIST_LAT_BUCKETS - 1;
}
#else
static __always_inline unsigned int hist_lat_bucket(unsigned int us)
{
	unsigned int k;

	if (us < 4)
		return us;
	if (us >= 1U << 28)
		return HIST_LAT_BUCKETS - 1;
	k = hist_log2(us);
	return 4 * (k - 1) + ((us >> (k - 2)) & 3);
}
#endif

/* Lowest value of a latency bucket, for readers of the record. */
static __always_inline unsigned long long hist_lat_floor_us(unsigned int bucket)
{
	if (bucket < 4)
		return bucket;
	return (4ULL + (bucket & 3)) << (bucket / 4 - 1);
}

#endif
