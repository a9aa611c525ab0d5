// SPDX-License-Identifier: GPL-2.0-only
#include "check.h"
#include "attribution_table.h"

#include <pthread.h>
#include <string.h>

#define SETS (1ULL << ATTRIBUTION_INODE_BITS)
#define READ 0
#define WRITE 1
#define DEV (8U << 20 | 16)

static struct attribution_table table;
static struct attributed found[ATTRIBUTION_INODES];

static int count(unsigned long long inode, unsigned int dev, unsigned int direction)
{
	unsigned long long place = attribution_place(inode, dev, ATTRIBUTION_INODE_BITS);

	return attribution_count(&table.inode[place], inode, dev, direction, 1);
}

static size_t take(void)
{
	memset(found, 0, sizeof(found));
	return attribution_take(table.inode, SETS, found);
}

static void forget(void)
{
	memset(&table, 0, sizeof(table));
}

/* The n-th inode whose set is that of inode 1. */
static unsigned long long same_set(int n)
{
	unsigned long long place = attribution_place(1, DEV, ATTRIBUTION_INODE_BITS), inode = 1;

	while (n)
		n -= attribution_place(++inode, DEV, ATTRIBUTION_INODE_BITS) == place;
	return inode;
}

static void reads_and_writes_of_each_owner_are_counted_apart(void)
{
	forget();
	for (int i = 0; i < 3; i++)
		CHECK_EQ(count(7, DEV, READ), 0);
	CHECK_EQ(count(7, DEV, WRITE), 0);
	CHECK_EQ(count(8, DEV, WRITE), 0);
	CHECK_EQ(take(), 2);
	CHECK_EQ(found[0].id, 7);
	CHECK_EQ(found[0].dev, DEV);
	CHECK_EQ(found[0].reads, 3);
	CHECK_EQ(found[0].writes, 1);
	CHECK_EQ(found[1].id, 8);
	CHECK_EQ(attributed_misses(&found[1]), 1);
}

static void one_number_on_two_filesystems_is_two_files(void)
{
	forget();
	CHECK_EQ(count(12, DEV, READ), 0);
	CHECK_EQ(count(12, DEV, READ), 0);
	CHECK_EQ(count(12, DEV + 1, READ), 0);
	CHECK_EQ(take(), 2);
	CHECK_EQ(found[0].dev, DEV);
	CHECK_EQ(found[0].reads, 2);
	CHECK_EQ(found[1].dev, DEV + 1);
}

static void misses_of_nobody_known_have_no_number(void)
{
	forget();
	CHECK_EQ(count(ATTRIBUTION_UNKNOWN, 0, READ), 0);
	CHECK_EQ(take(), 1);
	CHECK_EQ(found[0].id, 0);
	CHECK_EQ(found[0].dev, 0);
	CHECK_EQ(found[0].reads, 1);
}

static void a_fifth_owner_of_a_set_has_no_room(void)
{
	forget();
	for (int i = 0; i < ATTRIBUTION_WAYS; i++)
		CHECK_EQ(count(same_set(i), DEV, READ), 0);
	CHECK(count(same_set(ATTRIBUTION_WAYS), DEV, READ));
	CHECK_EQ(count(same_set(ATTRIBUTION_WAYS - 1), DEV, READ), 0);
	CHECK_EQ(take(), ATTRIBUTION_WAYS);
	CHECK_EQ(found[0].id, same_set(ATTRIBUTION_WAYS - 1));
	CHECK_EQ(found[0].reads, 2);
	for (int i = 0; i < ATTRIBUTION_WAYS; i++)
		CHECK(found[i].id != same_set(ATTRIBUTION_WAYS));
}

static void the_files_of_a_directory_share_all_sets(void)
{
	unsigned long long dropped = 0;

	forget();
	for (unsigned long long inode = 131073; inode < 131073 + ATTRIBUTION_INODES / 2; inode++)
		dropped += !!count(inode, DEV, READ);
	CHECK_EQ(dropped, 0);
	CHECK_EQ(take(), ATTRIBUTION_INODES / 2);
}

/* Two programs can begin an entry each for one owner: the second did not see the device yet. */
static void two_entries_of_an_owner_are_added_up(void)
{
	unsigned long long place = attribution_place(9, DEV, ATTRIBUTION_INODE_BITS);
	struct attribution_entry *way = table.inode[place].way;

	forget();
	way[0] = (struct attribution_entry){ .id = 9, .dev = 0 };
	CHECK_EQ(count(9, DEV, READ), 0);
	CHECK_EQ(way[1].dev, DEV);
	way[0].dev = DEV;
	way[0].misses[WRITE] = 2;
	CHECK_EQ(take(), 1);
	CHECK_EQ(found[0].reads, 1);
	CHECK_EQ(found[0].writes, 2);
}

static void what_was_taken_is_gone(void)
{
	forget();
	count(1, DEV, WRITE);
	CHECK_EQ(take(), 1);
	CHECK_EQ(take(), 0);
	count(1, DEV, READ);
	CHECK_EQ(take(), 1);
	CHECK_EQ(found[0].reads, 1);
	CHECK_EQ(found[0].writes, 0);
}

static void those_with_the_most_come_first_and_equal_ones_by_owner(void)
{
	forget();
	count(50, DEV, READ);
	count(40, DEV + 1, READ);
	count(60, DEV, READ);
	count(90, DEV, WRITE);
	count(90, DEV, READ);
	CHECK_EQ(take(), 4);
	CHECK_EQ(found[0].id, 90);
	CHECK_EQ(found[1].id, 50);
	CHECK_EQ(found[2].id, 60);
	CHECK_EQ(found[3].id, 40);
}

static void without_atomic_operations_one_program_counts_the_same(void)
{
	unsigned long long place = attribution_place(3, DEV, ATTRIBUTION_INODE_BITS);

	forget();
	for (int i = 0; i < 5; i++)
		CHECK_EQ(attribution_count(&table.inode[place], 3, DEV, READ, 0), 0);
	CHECK_EQ(take(), 1);
	CHECK_EQ(found[0].reads, 5);
}

#define THREADS 3
#define REQUESTS 200000

/* Requests to as many files as a set has room for, which all threads count in their own order. */
static void *count_many(void *thread)
{
	unsigned long long dropped = 0;

	for (uintptr_t i = 0; i < REQUESTS; i++)
		dropped += !!count(same_set((i + (uintptr_t)thread) % ATTRIBUTION_WAYS), DEV,
				   (uintptr_t)thread % 2);
	return (void *)(uintptr_t)dropped;
}

static void programs_on_several_cpus_lose_nothing(void)
{
	unsigned long long reads = 0, writes = 0, dropped = 0;
	pthread_t threads[THREADS];
	size_t n;

	forget();
	/* They begin entries at the same time. A set is full then, but for no other owner. */
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, count_many, (void *)i);
	for (int i = 0; i < THREADS; i++) {
		void *result;

		pthread_join(threads[i], &result);
		dropped += (uintptr_t)result;
	}
	n = take();
	for (size_t i = 0; i < n; i++) {
		reads += found[i].reads;
		writes += found[i].writes;
	}
	CHECK(n <= ATTRIBUTION_WAYS);
	CHECK_EQ(reads + writes + dropped, THREADS * REQUESTS);
}

int main(void)
{
	RUN(reads_and_writes_of_each_owner_are_counted_apart);
	RUN(one_number_on_two_filesystems_is_two_files);
	RUN(misses_of_nobody_known_have_no_number);
	RUN(a_fifth_owner_of_a_set_has_no_room);
	RUN(the_files_of_a_directory_share_all_sets);
	RUN(two_entries_of_an_owner_are_added_up);
	RUN(what_was_taken_is_gone);
	RUN(those_with_the_most_come_first_and_equal_ones_by_owner);
	RUN(without_atomic_operations_one_program_counts_the_same);
	RUN(programs_on_several_cpus_lose_nothing);
	return check_done();
}
