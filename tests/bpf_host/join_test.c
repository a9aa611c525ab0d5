// SPDX-License-Identifier: GPL-2.0-only
#include "check.h"
#include "join.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#define ID(n) (0x1000ULL + 8ULL * (n))

static struct join_table table;
static unsigned long long lost;

static void begin(void)
{
	memset(&table, 0, sizeof(table));
	lost = 0;
}

static struct join *enter(unsigned long long id)
{
	unsigned long long pushed_out = 0;
	struct join *j = join_enter(&table, id, 0, 1, &pushed_out);

	lost += !!pushed_out;
	return j;
}

static void leave(unsigned long long id)
{
	join_find(&table, id)->id = 0;
}

/* The first ids of one set. */
static void ids_of_one_set(unsigned long long *ids, int count)
{
	struct join_set *set = join_set_of(&table, ID(0));
	int found = 0;

	for (unsigned long long n = 0; found < count; n++)
		if (join_set_of(&table, ID(n)) == set)
			ids[found++] = ID(n);
}

static int entries_of(unsigned long long id)
{
	struct join *way = join_set_of(&table, id)->way;
	int count = 0;

	for (int i = 0; i < JOIN_WAYS; i++)
		count += join_is(&way[i], id);
	return count;
}

static void an_empty_set_has_nothing_to_find(void)
{
	begin();
	CHECK(enter(ID(1)) == join_set_of(&table, ID(1))->way);
	CHECK(join_enter(&table, ID(1), JOIN_PATH_MASK, 1, &lost) == join_find(&table, ID(1)));
	CHECK_EQ(join_find(&table, ID(1))->id, ID(1) + JOIN_PATH_MASK);
	CHECK_EQ(entries_of(ID(1)), 1);
	CHECK_EQ(lost, 0);
}

static void a_request_is_found_until_it_ends(void)
{
	begin();
	enter(ID(1))->start_ns = 17;
	enter(ID(2));
	CHECK_EQ(join_find(&table, ID(1))->start_ns, 17);
	leave(ID(1));
	CHECK(!join_find(&table, ID(1)));
	CHECK(join_find(&table, ID(2)));
	CHECK_EQ(lost, 0);
}

static void a_path_in_the_low_bits_does_not_hide_a_request(void)
{
	begin();
	enter(ID(1))->id |= JOIN_PATH_MASK;
	CHECK(join_find(&table, ID(1)));
	CHECK(!join_find(&table, ID(2)));
}

static void a_request_keeps_its_entry_when_an_earlier_place_is_free(void)
{
	unsigned long long ids[JOIN_WAYS];
	struct join *last = NULL;

	begin();
	ids_of_one_set(ids, JOIN_WAYS);
	for (int i = 0; i < JOIN_WAYS; i++)
		last = enter(ids[i]);
	leave(ids[0]);
	CHECK(enter(ids[JOIN_WAYS - 1]) == last);
	CHECK_EQ(entries_of(ids[JOIN_WAYS - 1]), 1);
	leave(ids[JOIN_WAYS - 1]);
	CHECK(!join_find(&table, ids[JOIN_WAYS - 1]));
}

static void a_full_set_loses_its_last_request_and_counts_it(void)
{
	unsigned long long ids[JOIN_WAYS + 1];

	begin();
	ids_of_one_set(ids, JOIN_WAYS + 1);
	for (int i = 0; i <= JOIN_WAYS; i++)
		enter(ids[i]);
	CHECK_EQ(lost, 1);
	CHECK(!join_find(&table, ids[JOIN_WAYS - 1]));
	CHECK(join_find(&table, ids[JOIN_WAYS]));
	CHECK(join_find(&table, ids[0]));
}

static void a_lost_request_is_told_with_its_path(void)
{
	unsigned long long ids[JOIN_WAYS + 1], pushed_out = 0;

	for (int atomics = 0; atomics < 2; atomics++) {
		begin();
		ids_of_one_set(ids, JOIN_WAYS + 1);
		for (int i = 0; i < JOIN_WAYS; i++)
			join_enter(&table, ids[i], 1 + i, atomics, &pushed_out)->bytes = 100 + i;
		CHECK_EQ(join_enter(&table, ids[JOIN_WAYS], 2, atomics, &pushed_out)->bytes, 103);
		CHECK_EQ(pushed_out, ids[JOIN_WAYS - 1] + JOIN_WAYS);
		CHECK_EQ(join_find(&table, ids[JOIN_WAYS])->id, ids[JOIN_WAYS] + 2);
	}
}

#define THREADS JOIN_WAYS
#define REQUESTS 200000

static unsigned long long shared_ids[THREADS];

/* One request at a time; returns how many were lost, or found another's entry. */
static void *enter_and_leave(void *thread)
{
	unsigned long long id = shared_ids[(uintptr_t)thread], wrong = 0, pushed_out = 0;

	for (unsigned long long i = 0; i < REQUESTS; i++) {
		struct join *found;

		join_enter(&table, id, i & JOIN_PATH_MASK, 1, &pushed_out)->start_ns = id + i;
		found = join_find(&table, id);
		if (!found || found->id != (id | (i & JOIN_PATH_MASK)) || found->start_ns != id + i)
			wrong++;
		else
			found->id = 0;
	}
	return (void *)(uintptr_t)(wrong + !!pushed_out);
}

static void programs_on_several_cpus_take_different_places_of_a_set(void)
{
	pthread_t threads[THREADS];

	begin();
	ids_of_one_set(shared_ids, THREADS);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, enter_and_leave, (void *)i);
	for (int i = 0; i < THREADS; i++) {
		void *wrong;

		pthread_join(threads[i], &wrong);
		CHECK_EQ((uintptr_t)wrong, 0);
	}
}

int main(void)
{
	RUN(an_empty_set_has_nothing_to_find);
	RUN(a_request_is_found_until_it_ends);
	RUN(a_path_in_the_low_bits_does_not_hide_a_request);
	RUN(a_request_keeps_its_entry_when_an_earlier_place_is_free);
	RUN(a_full_set_loses_its_last_request_and_counts_it);
	RUN(a_lost_request_is_told_with_its_path);
	RUN(programs_on_several_cpus_take_different_places_of_a_set);
	return check_done();
}
