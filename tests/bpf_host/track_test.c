// SPDX-License-Identifier: GPL-2.0-only
/* What the programs see of devices while volumes come and go in any order. */
#include "tracked.h"

static void roles_are_those_of_the_volumes(void)
{
	begin();
	partition_of_a = A | 1;
	follow("one", KIND_DISK, A, B, 0);
	CHECK_EQ(entry(A).roles, EB_IS_VOLUME | EB_IS_DISK);
	CHECK_EQ(entry(A | 1).roles, EB_IS_VOLUME | EB_IS_DISK);
	CHECK_EQ(entry(B).roles, EB_IS_BACKING);
	follow("two", KIND_BCACHE, 252U << 20, B, C);
	CHECK_EQ(entry(B).roles, EB_IS_BACKING | EB_HAS_CACHE);
	CHECK_EQ(entry(B).backs, 1);
	CHECK_EQ(entry(C).roles, EB_IS_CACHE | EB_HAS_CACHE);
	follow("three", KIND_DM_CACHE, 253U << 20, A, C);
	CHECK_EQ(entry(C).roles, EB_IS_CACHE | EB_HAS_CACHE | EB_SERVES_DM);
	leave("three");
	CHECK_EQ(entry(C).roles, EB_IS_CACHE | EB_HAS_CACHE);
	leave("two");
	CHECK_EQ(entry(B).roles, EB_IS_BACKING);
	CHECK_EQ(entry(B).backs, 0);
	leave("one");
	CHECK(nothing_is_left());
}

static void a_partition_that_became_one_of_another_disk_is_forgotten(void)
{
	begin();
	partition_of_a = A | 1;
	follow("one", KIND_DISK, A, 0, 0);
	partition_of_a = A | 2;
	CHECK(!track_partitions(&p, volume_named(&p, "one")));
	CHECK_EQ(entry(A | 1).roles, 0);
	CHECK_EQ(entry(A | 2).roles, EB_IS_VOLUME | EB_IS_DISK);
	leave("one");
	CHECK(nothing_is_left());
}

static void a_backing_device_that_stays_a_cache_device_backs_nothing(void)
{
	begin();
	follow("one", KIND_DISK, A, B, 0);
	follow("two", KIND_DISK, C, 0, B);
	CHECK_EQ(entry(B).roles, EB_IS_BACKING | EB_IS_CACHE);
	leave("one");
	CHECK_EQ(entry(B).roles, EB_IS_CACHE);
	leave("two");
	CHECK(nothing_is_left());
}

static void only_volumes_of_dm_have_requests_in_parts(void)
{
	uint32_t dm = 253U << 20, bcache = 252U << 20;

	begin();
	follow("upper", KIND_DM_CACHE, dm, bcache, MD);
	follow("lower", KIND_BCACHE, bcache, B, C);
	follow("array", KIND_DISK, MD, 0, 0);
	CHECK(entry(dm).roles & EB_HAS_PARTS);
	CHECK(!(entry(bcache).roles & EB_HAS_PARTS));
	CHECK(!(entry(MD).roles & EB_HAS_PARTS));
	leave("upper");
	leave("lower");
	leave("array");
	CHECK(nothing_is_left());
}

static void nothing_stays_in_whatever_order_volumes_go(void)
{
	static const char *const names[] = { "bcache", "dm", "disk", "array" };

	/* Each of the 24 orders, as a number in the mixed radix of 4, 3, 2. */
	for (int order = 0; order < 24; order++) {
		const char *left[4];
		int rest = order;

		begin();
		follow("bcache", KIND_BCACHE, 252U << 20, MD, A);
		follow("dm", KIND_DM_CACHE, 253U << 20, B, A);
		follow("disk", KIND_DISK, B, B, 0);
		follow("array", KIND_DISK, MD, MD, 0);
		CHECK(attached.bio_complete && attached.rq_complete);
		CHECK(attached.bcache && attached.dm);
		memcpy(left, names, sizeof(left));
		for (int n = 4; n > 0; n--) {
			leave(left[rest % n]);
			left[rest % n] = left[n - 1];
			rest /= n;
		}
		CHECK(nothing_is_left());
	}
}

static void programs_are_attached_only_while_a_volume_needs_them(void)
{
	begin();
	follow("bcache", KIND_BCACHE, 252U << 20, A, B);
	CHECK(attached.bcache && !attached.dm);
	CHECK(attached.rq_complete && !attached.bio_complete);
	follow("array", KIND_BCACHE, 252U << 20 | 128, MD, C);
	CHECK(attached.bio_complete);
	leave("array");
	CHECK(attached.bcache && !attached.bio_complete);
	follow("disk", KIND_DISK, MD, 0, 0);
	CHECK(attached.bio_complete);
	leave("disk");
	CHECK(!attached.bio_complete);
	leave("bcache");
	CHECK(!attached.rq_complete);
}

static void a_disk_below_logical_volumes_needs_no_program(void)
{
	const uint32_t lv = 253U << 20;

	begin();
	follow("lvm", KIND_DM_CACHE, lv, lv | 1, lv | 2);
	CHECK(attached.bio_complete && !attached.rq_complete);
	follow("array", KIND_DISK, MD, MD, 0);
	CHECK(!attached.rq_complete);
	follow("disk", KIND_DISK, C, 0, 0);
	CHECK(attached.rq_complete);
	leave("disk");
	CHECK(!attached.rq_complete);
	follow("bare", KIND_DM_CACHE, lv | 3, lv | 4, A);
	CHECK(attached.rq_complete);
	leave("bare");
	CHECK(attached.bio_complete && !attached.rq_complete);
}

static void a_volume_that_does_not_fit_leaves_nothing(void)
{
	struct command cmd = { .kind = KIND_DISK, .volume = A, .backing = B };

	begin();
	for (int i = 0; i < EB_DEVICES; i++)
		p.device[i] = (struct device){ .dev = 100U << 20 | i, .users = 1 };
	strcpy(cmd.name, "one");
	CHECK(track(&p, &cmd));
	memset(p.device, 0, sizeof(p.device));
	CHECK(nothing_is_left());
}

static void a_partition_is_refused_where_the_kernel_does_not_tell_it(void)
{
	struct command cmd = { .kind = KIND_BCACHE, .volume = 252U << 20, .cache = { A | 1 } };

	begin();
	partition_of_a = A | 1;
	cmd.backing = B;
	cmd.caches = 1;
	strcpy(cmd.name, "bcache");
	p.features.whole_disks = true;
	CHECK(strstr(track(&p, &cmd), "put the cache on whole disks"));
	CHECK(nothing_is_left());
	p.features.whole_disks = false;
	CHECK(!track(&p, &cmd));
}

static void md_raid0_is_refused_where_its_bios_end_elsewhere(void)
{
	struct command cmd = {
		.kind = KIND_BCACHE,
		.volume = 252U << 20,
		.backing = RAID0,
		.name = "bcache",
	};

	begin();
	p.features.whole_disks = true;
	CHECK(strstr(track(&p, &cmd), "md raid0"));
	CHECK(nothing_is_left());
	p.features.whole_disks = false;
	CHECK(!track(&p, &cmd));
}

static void a_device_with_nvme_paths_is_refused_in_any_role(void)
{
	struct command cmd[] = {
		{ .kind = KIND_DISK, .volume = NVME, .name = "disk" },
		{ .kind = KIND_BCACHE, .volume = 252U << 20, .backing = NVME, .name = "bcache" },
		{ .kind = KIND_DM_CACHE,
		  .volume = MD,
		  .cache = { NVME },
		  .caches = 1,
		  .name = "dm" },
	};

	begin();
	for (size_t i = 0; i < sizeof(cmd) / sizeof(cmd[0]); i++) {
		const char *error = track(&p, &cmd[i]);

		CHECK(error && strstr(error, "nvme_core.multipath=N"));
	}
	CHECK(nothing_is_left());
}

static void a_volume_too_many_leaves_no_program_attached(void)
{
	struct command cmd = { .kind = KIND_BCACHE, .volume = 252U << 20, .name = "bcache" };
	char name[16];

	begin();
	for (unsigned int i = 0; i < EB_VOLUMES; i++) {
		snprintf(name, sizeof(name), "disk%u", i);
		follow(name, KIND_DISK, 100U << 20 | i, 0, 0);
	}
	CHECK(track(&p, &cmd));
	CHECK(!attached.bcache);
}

int main(void)
{
	RUN(roles_are_those_of_the_volumes);
	RUN(a_partition_that_became_one_of_another_disk_is_forgotten);
	RUN(a_backing_device_that_stays_a_cache_device_backs_nothing);
	RUN(only_volumes_of_dm_have_requests_in_parts);
	RUN(nothing_stays_in_whatever_order_volumes_go);
	RUN(programs_are_attached_only_while_a_volume_needs_them);
	RUN(a_disk_below_logical_volumes_needs_no_program);
	RUN(a_volume_that_does_not_fit_leaves_nothing);
	RUN(a_partition_is_refused_where_the_kernel_does_not_tell_it);
	RUN(md_raid0_is_refused_where_its_bios_end_elsewhere);
	RUN(a_device_with_nvme_paths_is_refused_in_any_role);
	RUN(a_volume_too_many_leaves_no_program_attached);
	return check_done();
}
