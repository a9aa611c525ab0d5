// SPDX-License-Identifier: GPL-2.0-only
#include "check.h"
#include "heat_table.h"

#include <pthread.h>
#include <string.h>

#define MIB 2048ULL /* sectors */
#define SETS (1ULL << HEAT_SET_BITS)

static struct heat_table table;
static struct heat_chunk chunks[HEAT_ENTRIES];

static unsigned long long count(unsigned long long chunk, unsigned long long kind)
{
	return heat_count(&table, chunk * MIB, kind, 1);
}

static size_t take(void)
{
	memset(chunks, 0, sizeof(chunks));
	return heat_take(&table, chunks);
}

static void forget(void)
{
	memset(&table, 0, sizeof(table));
}

/* Chunks that share a set have other high bits. */
static unsigned long long same_set(unsigned long long chunk, unsigned long long tag)
{
	return tag * SETS + heat_mix(heat_mix(chunk % SETS, chunk / SETS), tag);
}

static void each_kind_of_request_is_counted_in_its_chunk(void)
{
	forget();
	for (int i = 0; i < 3; i++)
		CHECK_EQ(count(7, HEAT_SYNC_READ), 0);
	CHECK_EQ(count(7, HEAT_OTHER_READ), 0);
	CHECK_EQ(count(7, HEAT_WRITE), 0);
	CHECK_EQ(count(8, HEAT_WRITE), 0);
	CHECK_EQ(take(), 2);
	CHECK_EQ(chunks[0].chunk, 7);
	CHECK_EQ(chunks[0].sync_reads, 3);
	CHECK_EQ(chunks[0].other_reads, 1);
	CHECK_EQ(chunks[0].writes, 1);
	CHECK_EQ(chunks[1].chunk, 8);
	CHECK_EQ(heat_misses(&chunks[1]), 1);
}

static void a_request_belongs_to_the_chunk_in_which_it_begins(void)
{
	forget();
	heat_count(&table, 3 * MIB - 1, HEAT_SYNC_READ, 1);
	heat_count(&table, 3 * MIB, HEAT_SYNC_READ, 1);
	CHECK_EQ(take(), 2);
	CHECK_EQ(chunks[0].chunk, 2);
	CHECK_EQ(chunks[1].chunk, 3);
}

static void every_chunk_of_the_largest_volume_comes_back_as_it_was(void)
{
	unsigned long long step = HEAT_CHUNKS_MAX / 1000 + 1;

	for (unsigned long long chunk = 0; chunk < HEAT_CHUNKS_MAX; chunk += step) {
		forget();
		CHECK_EQ(count(chunk, HEAT_WRITE), 0);
		CHECK_EQ(take(), 1);
		CHECK_EQ(chunks[0].chunk, chunk);
	}
	CHECK_EQ(count(HEAT_CHUNKS_MAX - 1, HEAT_WRITE), 0);
	CHECK_EQ(take(), 1);
	CHECK_EQ(chunks[0].chunk, HEAT_CHUNKS_MAX - 1);
}

static void a_third_chunk_of_a_set_has_no_room(void)
{
	forget();
	CHECK_EQ(count(77, HEAT_SYNC_READ), 0);
	CHECK_EQ(count(same_set(77, 5), HEAT_SYNC_READ), 0);
	CHECK(count(same_set(77, 6), HEAT_SYNC_READ));
	CHECK_EQ(count(same_set(77, 5), HEAT_SYNC_READ), 0);
	CHECK_EQ(take(), 2);
	CHECK_EQ(chunks[0].chunk, same_set(77, 5));
	CHECK_EQ(chunks[1].chunk, 77);
}

static void a_volume_of_many_chunks_fits(void)
{
	forget();
	for (unsigned long long chunk = 0; chunk < HEAT_ENTRIES; chunk++)
		CHECK_EQ(count(chunk, HEAT_SYNC_READ), 0);
	CHECK_EQ(take(), HEAT_ENTRIES);
	CHECK_EQ(chunks[HEAT_ENTRIES - 1].chunk, HEAT_ENTRIES - 1);
}

/* The same share as heat.h promises. */
static void few_of_1500_random_chunks_have_no_room(void)
{
	unsigned long long seed = 1, dropped = 0;

	for (int round = 0; round < 20; round++) {
		forget();
		for (int i = 0; i < 1500; i++) {
			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			dropped += !!count(seed >> 42, HEAT_SYNC_READ);
		}
	}
	CHECK(dropped > 0);
	CHECK(dropped < 20 * 1500 / 100);
}

static void a_full_chunk_counts_no_more_and_spoils_no_other_count(void)
{
	const struct {
		unsigned long long kind;
		uint32_t limit;
	} kinds[] = { { HEAT_SYNC_READ, 32768 },
		      { HEAT_OTHER_READ, 16384 },
		      { HEAT_WRITE, 16384 } };

	for (int k = 0; k < 3; k++) {
		unsigned long long dropped = 0;

		forget();
		for (int i = 0; i < 100000; i++)
			dropped += !!count(9 * SETS + 5, kinds[k].kind);
		CHECK_EQ(take(), 1);
		CHECK_EQ(chunks[0].chunk, 9 * SETS + 5);
		CHECK_EQ(heat_misses(&chunks[0]), kinds[k].limit);
		CHECK_EQ(dropped, 100000 - kinds[k].limit);
	}
}

static void what_was_taken_is_gone(void)
{
	forget();
	count(1, HEAT_WRITE);
	CHECK_EQ(take(), 1);
	CHECK_EQ(take(), 0);
	count(1, HEAT_SYNC_READ);
	CHECK_EQ(take(), 1);
	CHECK_EQ(chunks[0].sync_reads, 1);
	CHECK_EQ(chunks[0].writes, 0);
}

static void the_hottest_chunks_come_first_and_equal_ones_by_place(void)
{
	forget();
	count(50, HEAT_SYNC_READ);
	count(40, HEAT_SYNC_READ);
	count(90, HEAT_WRITE);
	count(90, HEAT_OTHER_READ);
	CHECK_EQ(take(), 3);
	CHECK_EQ(chunks[0].chunk, 90);
	CHECK_EQ(chunks[1].chunk, 40);
	CHECK_EQ(chunks[2].chunk, 50);
}

static void without_atomic_operations_one_program_counts_the_same(void)
{
	forget();
	for (int i = 0; i < 5; i++)
		CHECK_EQ(heat_count(&table, 20 * MIB, HEAT_OTHER_READ, 0), 0);
	CHECK_EQ(take(), 1);
	CHECK_EQ(chunks[0].other_reads, 5);
}

#define THREADS 3
#define REQUESTS 200000

/* Requests of one kind, to chunks that the other threads count, too; returns how many had no room.
 */
static void *count_many(void *thread)
{
	const unsigned long long kinds[THREADS] = { HEAT_SYNC_READ, HEAT_OTHER_READ, HEAT_WRITE };
	unsigned long long dropped = 0;

	for (unsigned long long i = 0; i < REQUESTS; i++)
		dropped += !!count(same_set(77, i % 3), kinds[(uintptr_t)thread]);
	return (void *)(uintptr_t)dropped;
}

static void programs_on_several_cpus_and_the_loader_lose_only_what_they_tell(void)
{
	unsigned long long seen = 0, dropped = 0, elsewhere = 0;
	pthread_t threads[THREADS];

	forget();
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, count_many, (void *)i);
	for (int round = 0; round <= 2000; round++) {
		size_t n;

		for (int i = 0; round == 2000 && i < THREADS; i++) {
			void *result;

			pthread_join(threads[i], &result);
			dropped += (uintptr_t)result;
		}
		n = take();
		for (size_t i = 0; i < n; i++) {
			seen += heat_misses(&chunks[i]);
			elsewhere += chunks[i].chunk != same_set(77, chunks[i].chunk / SETS) ||
				     chunks[i].chunk / SETS > 2;
		}
	}
	CHECK_EQ(elsewhere, 0);
	CHECK_EQ(seen + dropped, THREADS * REQUESTS);
}

int main(void)
{
	RUN(each_kind_of_request_is_counted_in_its_chunk);
	RUN(a_request_belongs_to_the_chunk_in_which_it_begins);
	RUN(every_chunk_of_the_largest_volume_comes_back_as_it_was);
	RUN(a_third_chunk_of_a_set_has_no_room);
	RUN(a_volume_of_many_chunks_fits);
	RUN(few_of_1500_random_chunks_have_no_room);
	RUN(a_full_chunk_counts_no_more_and_spoils_no_other_count);
	RUN(what_was_taken_is_gone);
	RUN(the_hottest_chunks_come_first_and_equal_ones_by_place);
	RUN(without_atomic_operations_one_program_counts_the_same);
	RUN(programs_on_several_cpus_and_the_loader_lose_only_what_they_tell);
	return check_done();
}
