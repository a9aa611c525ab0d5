// SPDX-License-Identifier: GPL-2.0-only
#include "check.h"
#include "idle.h"

#define MS 1000000ULL
#define DAY (86400000ULL * MS)
#define WRAP (1ULL << STAMP_BITS)
#define SIZE(sectors) ((sectors) << STAMP_BITS)

static void an_age_ignores_the_size_above_the_time(void)
{
	CHECK_EQ(stamp_age_ns(1000 | SIZE(8ULL), 5000), 4000);
	CHECK_EQ(stamp_age_ns(1000 | SIZE(0x1fffULL), 5000), 4000);
}

static void an_age_survives_the_wrap_of_the_stamp(void)
{
	unsigned long long now = 3 * WRAP + 500;

	CHECK_EQ(stamp_age_ns((now - 2000) & STAMP_MASK, now), 2000);
}

static void a_full_time_is_found_before_and_after_the_reference(void)
{
	unsigned long long ref = 7 * WRAP + 100;

	CHECK_EQ(stamp_full_ns((ref + 5 * MS) & STAMP_MASK, ref), ref + 5 * MS);
	CHECK_EQ(stamp_full_ns((ref - 5 * MS) & STAMP_MASK, ref), ref - 5 * MS);
	CHECK_EQ(stamp_full_ns(((ref + 12 * DAY) & STAMP_MASK) | SIZE(77ULL), ref), ref + 12 * DAY);
	CHECK_EQ(stamp_full_ns(ref - 12 * DAY, ref), ref - 12 * DAY);
	CHECK_EQ(stamp_full_ns(ref, ref), ref);
}

static void the_size_of_a_stamp_is_in_sectors(void)
{
	CHECK_EQ(stamp_bytes(12345 | SIZE(8ULL)), 4096);
	CHECK_EQ(stamp_bytes(SIZE(0xfffULL)), 4095 * 512);
	CHECK_EQ(stamp_bytes(STAMP_MASK), 0);
}

static void activity_is_fresh_within_a_grain(void)
{
	unsigned long long last = 5 * WRAP + 10 * MS;

	CHECK(!idle_stale(last, last));
	CHECK(!idle_stale(last, last + IDLE_GRAIN_NS));
	CHECK(idle_stale(last, last + IDLE_GRAIN_NS + 1));
	CHECK(!idle_stale(last, ((last + IDLE_GRAIN_NS) & STAMP_MASK) | SIZE(8ULL)));
	CHECK(idle_stale(last, ((last + IDLE_GRAIN_NS + 1) & STAMP_MASK) | SIZE(8ULL)));
}

static void a_clock_that_lags_by_a_grain_is_fresh(void)
{
	unsigned long long last = 5 * WRAP + 10 * MS;

	CHECK(!idle_stale(last, last - IDLE_GRAIN_NS));
	CHECK(!idle_stale(IDLE_GRAIN_NS / 2, 0));
}

static void any_idle_time_up_to_the_wrap_is_stale(void)
{
	unsigned long long last = WRAP - 5 * MS;

	for (unsigned long long idle = MS; idle < WRAP - MS; idle += DAY / 7)
		if (!idle_stale(last, (last + idle) & STAMP_MASK))
			CHECK_EQ(idle, 0);
}

static void a_gap_needs_silence_and_a_millisecond(void)
{
	CHECK_EQ(idle_gap_ns(10 * MS, 12 * MS, 0), 2 * MS);
	CHECK_EQ(idle_gap_ns(10 * MS, 11 * MS, 0), MS);
	CHECK_EQ(idle_gap_ns(10 * MS, 11 * MS - 1, 0), 0);
	CHECK_EQ(idle_gap_ns(10 * MS, 12 * MS, 1), 0);
	CHECK_EQ(idle_gap_ns(10 * MS, 10 * MS, 0), 0);
	CHECK_EQ(idle_gap_ns(10 * MS, 9 * MS, 0), 0);
}

static void gap_buckets_are_powers_of_two_of_us(void)
{
	CHECK_EQ(idle_gap_bucket(MS), 9);
	CHECK_EQ(idle_gap_bucket(1024 * 1000 - 1), 9);
	CHECK_EQ(idle_gap_bucket(1024 * 1000), 10);
	CHECK_EQ(idle_gap_bucket(300 * MS), 18);
	CHECK_EQ(idle_gap_bucket(1000 * MS), 19);
	CHECK_EQ(idle_gap_bucket(3600 * 1000 * MS), 31);
	CHECK_EQ(idle_gap_bucket(300 * DAY), 31);
}

int main(void)
{
	RUN(an_age_ignores_the_size_above_the_time);
	RUN(an_age_survives_the_wrap_of_the_stamp);
	RUN(a_full_time_is_found_before_and_after_the_reference);
	RUN(the_size_of_a_stamp_is_in_sectors);
	RUN(activity_is_fresh_within_a_grain);
	RUN(a_clock_that_lags_by_a_grain_is_fresh);
	RUN(any_idle_time_up_to_the_wrap_is_stale);
	RUN(a_gap_needs_silence_and_a_millisecond);
	RUN(gap_buckets_are_powers_of_two_of_us);
	return check_done();
}
