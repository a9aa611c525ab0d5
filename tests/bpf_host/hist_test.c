// SPDX-License-Identifier: GPL-2.0-only
#include "check.h"
#include "hist.h"

#include <stdlib.h>

/* The definition in words, against which the tables are checked. */
static unsigned int slow_log2(unsigned long long v)
{
	unsigned int k = 0;

	while (v >>= 1)
		k++;
	return k;
}

static unsigned int slow_lat_bucket(unsigned int us)
{
	unsigned int k = slow_log2(us);

	return us < 4 ? us : 4 * (k - 1) + ((us >> (k - 2)) & 3);
}

static void log2_agrees_with_its_definition_at_every_edge(void)
{
	CHECK_EQ(hist_log2(0), 0);
	for (int bit = 0; bit < 32; bit++) {
		unsigned int edge = 1U << bit;

		CHECK_EQ(hist_log2(edge), (unsigned int)bit);
		CHECK_EQ(hist_log2(edge - 1), slow_log2(edge - 1));
		CHECK_EQ(hist_log2(edge | (edge - 1)), (unsigned int)bit);
	}
}

static void log2_bucket_saturates_above_32_bits(void)
{
	CHECK_EQ(hist_log2_bucket(1ULL << 32), 31);
	CHECK_EQ(hist_log2_bucket(~0ULL), 31);
	CHECK_EQ(hist_log2_bucket(1ULL << 31), 31);
	CHECK_EQ(hist_log2_bucket((1ULL << 31) - 1), 30);
}

static void latency_bucket_agrees_with_its_definition(void)
{
	for (unsigned int us = 0; us < 1U << 22; us++)
		if (hist_lat_bucket(us) != slow_lat_bucket(us))
			CHECK_EQ(hist_lat_bucket(us), slow_lat_bucket(us));
	for (int bit = 2; bit < 28; bit++) {
		unsigned int edge = 1U << bit;

		CHECK_EQ(hist_lat_bucket(edge), slow_lat_bucket(edge));
		CHECK_EQ(hist_lat_bucket(edge - 1), slow_lat_bucket(edge - 1));
		CHECK_EQ(hist_lat_bucket(edge + edge / 4 - 1), slow_lat_bucket(edge));
	}
}

static void latency_above_268_s_is_in_the_last_bucket(void)
{
	CHECK_EQ(hist_lat_bucket((1U << 28) - 1), HIST_LAT_BUCKETS - 1);
	CHECK_EQ(hist_lat_bucket(1U << 28), HIST_LAT_BUCKETS - 1);
	CHECK_EQ(hist_lat_bucket(~0U), HIST_LAT_BUCKETS - 1);
}

static void a_bucket_s_floor_is_its_lowest_value(void)
{
	for (unsigned int b = 0; b < HIST_LAT_BUCKETS; b++) {
		unsigned long long lowest = hist_lat_floor_us(b);

		CHECK_EQ(hist_lat_bucket(lowest), b);
		if (b)
			CHECK_EQ(hist_lat_bucket(lowest - 1), b - 1);
	}
}

static void no_latency_bucket_is_wider_than_a_quarter_of_its_floor(void)
{
	for (unsigned int b = 4; b + 1 < HIST_LAT_BUCKETS; b++) {
		unsigned long long lowest = hist_lat_floor_us(b);

		CHECK(hist_lat_floor_us(b + 1) - lowest <= (lowest + 3) / 4);
	}
}

static void us_is_exact_up_to_two_seconds(void)
{
	for (unsigned long long us = 0; us < 2000000; us += 7) {
		if (hist_us(us * 1000) != us || hist_us(us * 1000 + 999) != us)
			CHECK_EQ(hist_us(us * 1000), us);
	}
}

static void us_is_at_most_five_too_high_and_saturates(void)
{
	srand(1);
	for (int i = 0; i < 100000; i++) {
		unsigned long long ns =
			((unsigned long long)rand() << 20 ^ rand()) & ((1ULL << 40) - 1);
		unsigned long long us = hist_us(ns);

		CHECK(us >= ns / 1000 && us <= ns / 1000 + 5);
	}
	CHECK_EQ(hist_us(~0ULL), hist_us(1ULL << 40));
	CHECK_EQ(hist_lat_bucket(hist_us(~0ULL)), HIST_LAT_BUCKETS - 1);
}

int main(void)
{
	RUN(log2_agrees_with_its_definition_at_every_edge);
	RUN(log2_bucket_saturates_above_32_bits);
	RUN(latency_bucket_agrees_with_its_definition);
	RUN(latency_above_268_s_is_in_the_last_bucket);
	RUN(a_bucket_s_floor_is_its_lowest_value);
	RUN(no_latency_bucket_is_wider_than_a_quarter_of_its_floor);
	RUN(us_is_exact_up_to_two_seconds);
	RUN(us_is_at_most_five_too_high_and_saturates);
	return check_done();
}
