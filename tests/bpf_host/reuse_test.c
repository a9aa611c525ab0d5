// SPDX-License-Identifier: GPL-2.0-only
#include "check.h"
#include "idle.h"
#include "reuse_ring.h"

#include <string.h>

#define KIB 2ULL /* sectors */
#define MIB (1024 * KIB)

static struct reuse_ring ring;
static unsigned long long lost_requests;
static struct reuse_ref refs[2 * REUSE_SLOTS];
static uint64_t lost;

static void forget(void)
{
	memset(&ring, 0, sizeof(ring));
	lost_requests = 0;
	lost = 0;
}

static void request(unsigned long long sector, unsigned int sectors)
{
	reuse_request(&ring, sector, sectors, 0, 1, &lost_requests);
}

static size_t take(size_t room)
{
	return reuse_take(&ring, refs, room, &lost);
}

/* The same figures as in tests/unit/harness/test_mrc.py. */
static void the_sampled_blocks_are_those_of_the_bench(void)
{
	CHECK_EQ(reuse_block(0), 158);
	CHECK_EQ(reuse_block(1), 256 + 60);
	CHECK_EQ(reuse_block(77), 77 * 256 + 52);
	CHECK_EQ(reuse_block(1ULL << 40), (1ULL << 48) + 232);
}

static void one_block_of_each_chunk_is_sampled(void)
{
	forget();
	for (unsigned long long block = 0; block < 4 * 256; block++)
		request(block * 8, 8);
	CHECK_EQ(take(REUSE_SLOTS), 4);
	for (unsigned int i = 0; i < 4; i++)
		CHECK_EQ(refs[i].ref, 2 * reuse_block(i));
}

static void a_request_is_sampled_if_it_touches_the_block(void)
{
	unsigned long long sector = reuse_block(5) * 8;

	forget();
	request(sector - 8, 8);
	request(sector + 8, 8);
	CHECK_EQ(ring.next, 0);
	request(sector + 7, 1);
	request(sector - 1, 2);
	request(sector - 16, 64);
	CHECK_EQ(ring.next, 3);
}

static void a_long_request_is_tested_in_each_chunk(void)
{
	forget();
	request(MIB, 3 * MIB);
	CHECK_EQ(take(REUSE_SLOTS), 3);
	CHECK_EQ(refs[2].ref, 2 * reuse_block(3));
	CHECK_EQ(lost_requests, 0);
	request(MIB / 2, 4 * MIB);
	CHECK_EQ(lost_requests, 1);
}

static void a_write_is_marked(void)
{
	forget();
	reuse_request(&ring, 0, MIB, 1, 77, &lost_requests);
	CHECK_EQ(take(1), 1);
	CHECK_EQ(refs[0].ref, 2 * reuse_block(0) + 1);
	CHECK_EQ(refs[0].ns, 77);
}

static void each_reference_is_taken_once(void)
{
	forget();
	request(0, MIB);
	CHECK_EQ(take(REUSE_SLOTS), 1);
	CHECK_EQ(take(REUSE_SLOTS), 0);
	request(MIB, MIB);
	CHECK_EQ(take(REUSE_SLOTS), 1);
	CHECK_EQ(lost, 0);
}

static void a_ring_that_ran_over_keeps_the_newest_and_counts_the_rest(void)
{
	forget();
	for (unsigned int i = 0; i < REUSE_SLOTS + 10; i++)
		request(i * MIB, MIB);
	CHECK_EQ(take(2 * REUSE_SLOTS), REUSE_SLOTS - 1);
	CHECK_EQ(refs[0].ref, 2 * reuse_block(11));
	CHECK_EQ(refs[REUSE_SLOTS - 2].ref, 2 * reuse_block(REUSE_SLOTS + 9));
	CHECK_EQ(lost, 11);
}

static void references_without_room_are_lost(void)
{
	forget();
	for (unsigned int i = 0; i < 5; i++)
		request(i * MIB, MIB);
	CHECK_EQ(take(2), 2);
	CHECK_EQ(refs[1].ref, 2 * reuse_block(1));
	CHECK_EQ(lost, 3);
	CHECK_EQ(take(2), 0);
}

static void references_of_several_cpus_are_put_in_order(void)
{
	struct reuse_ref mixed[] = { { 5, 10 }, { 9, 12 }, { 3, 14 }, { 7, 16 } };

	reuse_sort(mixed, 4);
	for (unsigned int i = 0; i < 3; i++)
		CHECK(mixed[i].ns < mixed[i + 1].ns);
}

/* Kernels that stamp bios put the size into the bits above the time, which wraps. */
static void references_of_several_sizes_are_put_in_order(void)
{
	struct reuse_ref mixed[] = {
		{ 9 | 8ULL << STAMP_BITS, 10 },
		{ 5 | 2048ULL << STAMP_BITS, 12 },
		{ STAMP_MASK - 3, 14 },
	};

	reuse_sort(mixed, 3);
	CHECK_EQ(mixed[0].ref, 14);
	CHECK_EQ(mixed[1].ref, 12);
	CHECK_EQ(mixed[2].ref, 10);
}

int main(void)
{
	RUN(the_sampled_blocks_are_those_of_the_bench);
	RUN(one_block_of_each_chunk_is_sampled);
	RUN(a_request_is_sampled_if_it_touches_the_block);
	RUN(a_long_request_is_tested_in_each_chunk);
	RUN(a_write_is_marked);
	RUN(each_reference_is_taken_once);
	RUN(a_ring_that_ran_over_keeps_the_newest_and_counts_the_rest);
	RUN(references_without_room_are_lost);
	RUN(references_of_several_cpus_are_put_in_order);
	RUN(references_of_several_sizes_are_put_in_order);
	return check_done();
}
