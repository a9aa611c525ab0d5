// SPDX-License-Identifier: GPL-2.0-only
#include "check.h"
#include "stream.h"

#include <stdlib.h>
#include <string.h>

#define KIB 2ULL /* sectors */
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define TICKS_PER_S (1000000000ULL >> STREAM_TICK_SHIFT)

static struct stream_table table;
static unsigned long long lost;

static void forget(void)
{
	memset(&table, 0, sizeof(table));
	lost = 0;
}

static unsigned int at(unsigned long long sector, unsigned int sectors, unsigned int tick)
{
	return stream_advance(&table, sector, sectors, tick, &lost);
}

static void one_stream_grows_by_each_request(void)
{
	forget();
	for (unsigned int i = 1; i <= 1000; i++)
		CHECK_EQ(at(GIB + (i - 1) * 128 * KIB, 128 * KIB, i), i * 128 * KIB);
	CHECK_EQ(lost, 0);
}

static void the_first_sector_of_a_device_begins_a_stream_too(void)
{
	forget();
	CHECK_EQ(at(0, 8, 1), 8);
	CHECK_EQ(at(8, 8, 1), 16);
	CHECK_EQ(at(0, 8, 1), 8);
}

static void interleaved_exactly(unsigned int streams, unsigned long long apart)
{
	forget();
	for (unsigned int i = 0; i < 2000; i++)
		for (unsigned int s = 0; s < streams; s++)
			if (at(s * apart + i * 64 * KIB, 64 * KIB, i / 100) != (i + 1) * 64 * KIB)
				CHECK_EQ(i, ~0ULL);
	CHECK_EQ(lost, 0);
}

static void sixty_four_interleaved_streams_are_all_followed(void)
{
	interleaved_exactly(64, 10 * GIB);
	interleaved_exactly(64, 200 * MIB);
	interleaved_exactly(64, 127 * MIB + 8);
	interleaved_exactly(100, 1ULL << 30);
}

static void a_random_order_of_many_streams_is_no_different(void)
{
	unsigned long long next[64];

	forget();
	srand(2);
	for (int s = 0; s < 64; s++)
		next[s] = s * 3 * GIB;
	for (int i = 0; i < 200000; i++) {
		int s = rand() % 64;
		unsigned int sectors = 8 << rand() % 8;
		unsigned long long run = next[s] - s * 3 * GIB + sectors;

		if (run > MIB) {
			next[s] = s * 3 * GIB + MIB * (1 + rand() % 100) + rand() % 1000 * 2048;
			continue;
		}
		(void)at(next[s], sectors, i / 1000);
		next[s] += sectors;
	}
	CHECK(lost < 20);
}

static void random_requests_are_runs_of_themselves(void)
{
	forget();
	srand(3);
	for (int i = 0; i < 20000; i++)
		if (at((unsigned long long)rand() * 8, 8, i / 100) > 8)
			lost++;
	/* Two random neighbours meet now and then. */
	CHECK(lost < 20);
}

static void a_stream_survives_a_hundred_random_requests_between_two_of_its_own(void)
{
	unsigned int broken = 0;

	forget();
	srand(4);
	for (unsigned int i = 0; i < 1000; i++) {
		broken += at(GIB + i * 128, 128, i) != (i + 1) * 128;
		for (int r = 0; r < 100; r++)
			at(8 * GIB + (unsigned long long)rand() * 8, 8, i);
	}
	CHECK_EQ(broken, 0);
}

static void a_stream_resumes_within_five_seconds_and_not_later(void)
{
	unsigned int tick = 1000;

	forget();
	at(0, 256, tick);
	CHECK_EQ(at(256, 256, tick += STREAM_EXPIRE_TICKS), 512);
	CHECK_EQ(at(512, 256, tick += STREAM_EXPIRE_TICKS + 1), 256);
	/* What resumed too late is a stream of its own. */
	CHECK_EQ(at(768, 256, tick + 1), 512);
}

static void expiry_is_five_seconds(void)
{
	CHECK(STREAM_EXPIRE_TICKS >= 4 * TICKS_PER_S && STREAM_EXPIRE_TICKS <= 5 * TICKS_PER_S + 5);
}

static void the_tick_may_wrap_within_a_stream(void)
{
	forget();
	at(0, 8, STREAM_TICK_MASK - 1);
	CHECK_EQ(at(8, 8, STREAM_TICK_MASK), 16);
	CHECK_EQ(at(16, 8, 0), 24);
	CHECK_EQ(at(24, 8, 1), 32);
}

static void the_sector_number_may_wrap(void)
{
	unsigned long long last = ~0ULL - 15;

	forget();
	CHECK_EQ(at(last, 8, 1), 8);
	CHECK_EQ(at(last + 8, 8, 1), 16);
	CHECK_EQ(at(0, 8, 1), 24);
	CHECK_EQ(at(8, 8, 1), 32);
}

static void a_run_saturates(void)
{
	forget();
	CHECK_EQ(at(0, STREAM_RUN_MAX - 8, 1), STREAM_RUN_MAX - 8);
	CHECK_EQ(at(STREAM_RUN_MAX - 8, 128, 1), STREAM_RUN_MAX);
	CHECK_EQ(at(STREAM_RUN_MAX + 120ULL, 128, 1), STREAM_RUN_MAX);
	CHECK_EQ(stream_run_bucket(STREAM_RUN_MAX), 30);
}

static void a_gap_or_a_step_back_begins_anew(void)
{
	forget();
	at(0, 128, 1);
	CHECK_EQ(at(129, 128, 1), 128);
	CHECK_EQ(at(120, 128, 1), 128);
	CHECK_EQ(at(257, 8, 1), 136);
}

static void descending_requests_are_no_stream(void)
{
	forget();
	for (unsigned int i = 0; i < 1000; i++)
		CHECK_EQ(at(GIB - i * 512ULL, 512, 1), 512);
}

static void overlapping_writes_are_no_stream_but_their_ends_continue(void)
{
	forget();
	at(1000, 64, 1);
	CHECK_EQ(at(1032, 64, 1), 64);
	CHECK_EQ(at(1064, 64, 1), 128);
	CHECK_EQ(at(1096, 64, 1), 128);
}

static void a_position_continues_one_request_only(void)
{
	forget();
	at(0, 128, 1);
	CHECK_EQ(at(128, 128, 1), 256);
	CHECK_EQ(at(128, 128, 1), 128);
}

static void a_block_that_is_rewritten_takes_one_place(void)
{
	unsigned int places = 0;

	forget();
	for (int i = 0; i < 1000; i++)
		CHECK_EQ(at(4096, 8, 1), 8);
	for (int s = 0; s < STREAM_SETS; s++)
		for (int w = 0; w < STREAM_WAYS; w++)
			places += table.set[s].way[w].run != 0;
	CHECK_EQ(places, 1);
}

static void a_loss_is_counted_when_a_live_stream_is_forgotten(void)
{
	unsigned long long next[8], sector = 8;
	int n = 0;

	/* Five streams whose next position falls into one set of four. */
	forget();
	for (; n < 5; sector += 1024)
		if (stream_set_of(&table, sector + 512) == &table.set[0])
			next[n++] = sector;
	for (int i = 0; i < 5; i++)
		at(next[i], 512, 1);
	CHECK_EQ(lost, 1);
	CHECK_EQ(at(next[0] + 512, 8, 1), 8);
	CHECK_EQ(at(next[4] + 512, 8, 1), 520);
}

static void forgetting_an_expired_or_short_run_is_no_loss(void)
{
	unsigned long long sector = 8;
	int n = 0;

	forget();
	for (; n < 100; sector += 1024)
		if (stream_set_of(&table, sector + 512) == &table.set[0])
			at(sector, 512, n++ * (STREAM_EXPIRE_TICKS + 1));
	for (n = 0; n < 100; sector += 1024)
		if (stream_set_of(&table, sector + 511) == &table.set[1])
			at(sector, 511, n++ ? 1 : 1);
	CHECK_EQ(lost, 0);
}

static void run_buckets_begin_at_512_bytes(void)
{
	CHECK_EQ(stream_run_bucket(1), 0);
	CHECK_EQ(stream_run_bucket(2), 1);
	CHECK_EQ(stream_run_bucket(3), 1);
	CHECK_EQ(stream_run_bucket(8), 3);
	CHECK_EQ(stream_run_bucket(2 * 4096 - 1), 12);
	CHECK_EQ(stream_run_bucket(2 * 4096), 13);
}

static void a_stamp_and_a_clock_give_the_same_tick(void)
{
	unsigned long long ns = 123456789012345ULL, size = 0x1fffULL << STAMP_BITS;

	CHECK_EQ(stream_tick(ns), stream_tick(ns | size));
	CHECK_EQ(stream_tick(ns), (ns >> STREAM_TICK_SHIFT) & STREAM_TICK_MASK);
	CHECK_EQ(stream_tick(STAMP_MASK + 1 + ns), stream_tick(ns));
}

int main(void)
{
	RUN(one_stream_grows_by_each_request);
	RUN(the_first_sector_of_a_device_begins_a_stream_too);
	RUN(sixty_four_interleaved_streams_are_all_followed);
	RUN(a_random_order_of_many_streams_is_no_different);
	RUN(random_requests_are_runs_of_themselves);
	RUN(a_stream_survives_a_hundred_random_requests_between_two_of_its_own);
	RUN(a_stream_resumes_within_five_seconds_and_not_later);
	RUN(expiry_is_five_seconds);
	RUN(the_tick_may_wrap_within_a_stream);
	RUN(the_sector_number_may_wrap);
	RUN(a_run_saturates);
	RUN(a_gap_or_a_step_back_begins_anew);
	RUN(descending_requests_are_no_stream);
	RUN(overlapping_writes_are_no_stream_but_their_ends_continue);
	RUN(a_position_continues_one_request_only);
	RUN(a_block_that_is_rewritten_takes_one_place);
	RUN(a_loss_is_counted_when_a_live_stream_is_forgotten);
	RUN(forgetting_an_expired_or_short_run_is_no_loss);
	RUN(run_buckets_begin_at_512_bytes);
	RUN(a_stamp_and_a_clock_give_the_same_tick);
	return check_done();
}
