// SPDX-License-Identifier: GPL-2.0-only
#include "check.h"
#include "devtable.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static struct eb_shared shared;

/* What find_dev() of maps.bpf.h does. */
static struct eb_dev *look_up(uint32_t dev)
{
	uint32_t home = dev * EB_DEV_HASH >> 24;

	for (unsigned int probe = 0; probe < EB_DEV_PROBES; probe++) {
		struct eb_dev *e = &shared.dev[(home + probe) & (EB_DEV_SLOTS - 1)];

		if (e->dev == dev)
			return e;
		if (!e->dev)
			return NULL;
	}
	return NULL;
}

static int set(uint32_t dev, uint8_t roles, uint8_t volume)
{
	struct eb_dev e = { .dev = dev, .roles = roles, .volume = volume, .backs = volume };

	return dev_set(&shared, e);
}

static void what_was_added_is_found(void)
{
	memset(&shared, 0, sizeof(shared));
	CHECK(!set(254U << 20, EB_IS_BACKING, 3));
	CHECK(look_up(254U << 20) && look_up(254U << 20)->backs == 3);
	CHECK(!look_up(254U << 20 | 1));
	CHECK(!look_up(0) || !look_up(0)->roles);
}

static void an_entry_is_replaced_as_a_whole(void)
{
	memset(&shared, 0, sizeof(shared));
	CHECK(!set(7, EB_IS_VOLUME | EB_IS_BACKING, 1));
	CHECK(!set(7, EB_IS_BACKING, 2));
	CHECK_EQ(look_up(7)->roles, EB_IS_BACKING);
	CHECK(look_up(7)->volume == 2 && look_up(7)->backs == 2);
}

static void an_entry_without_a_role_is_gone(void)
{
	memset(&shared, 0, sizeof(shared));
	set(7, EB_IS_BACKING | EB_IS_BIO, 1);
	CHECK(!set(7, 0, 0));
	CHECK_EQ(look_up(7)->roles, 0);
	/* What was never there takes no room. */
	CHECK(!set(8, 0, 0));
	CHECK(!look_up(8));
}

static void removing_one_does_not_hide_its_neighbours(void)
{
	uint32_t same[3], n = 0;

	memset(&shared, 0, sizeof(shared));
	for (uint32_t dev = 1; n < 3; dev++)
		if (dev * EB_DEV_HASH >> 24 == 200)
			same[n++] = dev;
	for (n = 0; n < 3; n++)
		CHECK(!set(same[n], EB_IS_CACHE, n));
	set(same[0], 0, 0);
	set(same[1], 0, 0);
	CHECK(look_up(same[2]) && look_up(same[2])->roles == EB_IS_CACHE);
}

static void a_full_neighbourhood_is_an_error_and_removal_makes_room(void)
{
	uint32_t same[5], n = 0;

	memset(&shared, 0, sizeof(shared));
	for (uint32_t dev = 1; n < 5; dev++)
		if (dev * EB_DEV_HASH >> 24 == 255)
			same[n++] = dev;
	for (n = 0; n < 4; n++)
		CHECK(!set(same[n], EB_IS_CACHE, n));
	CHECK(set(same[4], EB_IS_CACHE, 4) < 0);
	set(same[2], 0, 0);
	CHECK(!set(same[4], EB_IS_CACHE, 4));
	CHECK(look_up(same[4]) && look_up(same[4])->roles == EB_IS_CACHE);
	CHECK(look_up(same[3]) && look_up(same[3])->roles == EB_IS_CACHE);
}

static void all_that_may_be_tracked_fits_nearly_always(void)
{
	unsigned int refused = 0;

	srand(5);
	for (int round = 0; round < 200; round++) {
		memset(&shared, 0, sizeof(shared));
		for (int v = 0; v < EB_VOLUMES; v++) {
			uint32_t disk = (8U + rand() % 2 * 57) << 20 | (rand() % 64 * 16);

			refused += set(252U << 20 | v * 128, EB_IS_VOLUME, v) != 0;
			refused += set(disk, EB_IS_BACKING, v) != 0;
			refused += set((259U << 20) + v, EB_IS_CACHE, v) != 0;
		}
	}
	CHECK(refused < 10);
}

int main(void)
{
	RUN(what_was_added_is_found);
	RUN(an_entry_is_replaced_as_a_whole);
	RUN(an_entry_without_a_role_is_gone);
	RUN(removing_one_does_not_hide_its_neighbours);
	RUN(a_full_neighbourhood_is_an_error_and_removal_makes_room);
	RUN(all_that_may_be_tracked_fits_nearly_always);
	return check_done();
}
