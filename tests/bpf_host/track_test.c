// SPDX-License-Identifier: GPL-2.0-only
/* What the programs see of devices while volumes come and go in any order. */
#include "check.h"
#include "block_programs.h"
#include "clock.h"
#include "endio.h"
#include "in_flight.h"
#include "programs.h"
#include "sysfs.h"
#include "track.h"

#include <string.h>

#define A (8U << 20)
#define B (8U << 20 | 16)
#define C (8U << 20 | 32)
#define MD (9U << 20)
#define NVME (259U << 20)
#define RAID0 (9U << 20 | 1)
#define CPUS 2

static struct eb_shared shared;
static struct eb_cpu cpu[CPUS];
static struct probe p;
static struct program_needs attached;
static bool no_addresses;
static uint32_t partition_of_a;

/* What track.c and entries.c need of the rest of the loader. */
uint64_t now_ns(void)
{
	return NS_PER_S;
}

bool block_device_exists(uint32_t dev)
{
	(void)dev;
	return true;
}

bool block_is_partition(uint32_t dev)
{
	return dev == partition_of_a;
}

bool block_has_nvme_paths(uint32_t dev)
{
	return dev == NVME;
}

bool block_is_md_raid0(uint32_t dev)
{
	return dev == RAID0;
}

bool block_has_requests(uint32_t dev)
{
	return dev >> 20 == 8;
}

size_t block_partitions(uint32_t dev, uint32_t *parts, size_t max)
{
	if (dev != A || !partition_of_a || !max)
		return 0;
	parts[0] = partition_of_a;
	return 1;
}

const char *attach_programs(struct probe *probe, struct program_needs needs)
{
	(void)probe;
	attached.bcache |= needs.bcache;
	attached.dm |= needs.dm;
	attached.rq_complete |= needs.rq_complete;
	attached.bio_complete |= needs.bio_complete;
	return NULL;
}

void detach_programs(struct probe *probe, struct program_needs needs)
{
	(void)probe;
	attached.bcache &= needs.bcache;
	attached.dm &= needs.dm;
	attached.rq_complete &= needs.rq_complete;
	attached.bio_complete &= needs.bio_complete;
}

bool resolve_endio(struct probe *probe, uint32_t modules, char reason[REASON_BYTES])
{
	(void)probe;
	if (!no_addresses || modules == ENDIO_KERNEL)
		return true;
	strcpy(reason, "hidden");
	return false;
}

/* A volume of bcache is smaller than its backing device, A or B. */
uint64_t block_sectors(uint32_t dev)
{
	return dev ? (dev == A ? 1 << 30 : 1 << 20) + (dev == B ? 16 : 0) : 0;
}

void clear_tables(struct probe *probe, const struct volume *v)
{
	(void)probe;
	(void)v;
}

void init_in_flight(struct probe *probe, struct volume *v)
{
	(void)probe;
	(void)v;
}

static void begin(void)
{
	memset(&shared, 0, sizeof(shared));
	memset(&p, 0, sizeof(p));
	p.ncpu = CPUS;
	p.shared = &shared;
	p.cpu = cpu;
	attached = (struct program_needs){ 0 };
	no_addresses = false;
	partition_of_a = 0;
}

static void follow(const char *name, enum kind kind, uint32_t volume, uint32_t backing,
		   uint32_t cache)
{
	struct command cmd = { .kind = kind, .volume = volume, .backing = backing };

	strcpy(cmd.name, name);
	cmd.cache[0] = cache;
	cmd.caches = cache != 0;
	CHECK(!track(&p, &cmd));
}

static void leave(const char *name)
{
	untrack(&p, volume_named(&p, name));
}

static struct eb_dev entry(uint32_t dev)
{
	for (int i = 0; i < EB_DEV_SLOTS; i++)
		if (shared.dev[i].dev == dev)
			return shared.dev[i];
	return (struct eb_dev){ 0 };
}

static bool nothing_is_left(void)
{
	for (int i = 0; i < EB_DEV_SLOTS; i++)
		if (shared.dev[i].roles)
			return false;
	for (int i = 0; i < EB_DEVICES; i++)
		if (p.device[i].dev)
			return false;
	return !attached.rq_complete && !attached.bio_complete && !attached.bcache && !attached.dm;
}

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

static void misses_are_counted_from_where_the_volume_begins(void)
{
	begin();
	follow("bcache", KIND_BCACHE, 252U << 20, B, C);
	CHECK_EQ(entry(B).data_sector, 16);
	CHECK(volume_named(&p, "bcache")->has_heat);
	follow("dm", KIND_DM_CACHE, 253U << 20, MD, C);
	CHECK(volume_named(&p, "dm")->has_heat);
	follow("disk", KIND_DISK, NVME | 1, 0, 0);
	CHECK(!volume_named(&p, "disk")->has_heat);
}

static void misses_are_not_counted_where_their_place_is_not_known(void)
{
	begin();
	/* It has grown since bcache took it, or is not known. */
	follow("grown", KIND_BCACHE, 252U << 20, A, C);
	CHECK(!volume_named(&p, "grown")->has_heat);
	follow("bare", KIND_BCACHE, 252U << 20 | 16, 0, C);
	CHECK(!volume_named(&p, "bare")->has_heat);
	p.inherits = true;
	follow("dm", KIND_DM_CACHE, 253U << 20, MD, B);
	CHECK(!volume_named(&p, "dm")->has_heat);
}

static void misses_of_a_cache_are_attributed_unless_programs_are_inherited(void)
{
	begin();
	follow("grown", KIND_BCACHE, 252U << 20, A, C);
	CHECK(volume_named(&p, "grown")->has_attribution);
	follow("dm", KIND_DM_CACHE, 253U << 20, MD, C);
	CHECK(volume_named(&p, "dm")->has_attribution);
	follow("disk", KIND_DISK, NVME | 1, 0, 0);
	CHECK(!volume_named(&p, "disk")->has_attribution);
	p.inherits = true;
	follow("bcache", KIND_BCACHE, 252U << 20 | 16, B, C);
	CHECK(!volume_named(&p, "bcache")->has_attribution);
}

static void a_volume_without_addresses_is_followed_and_says_so(void)
{
	begin();
	no_addresses = true;
	follow("bcache", KIND_BCACHE, 252U << 20, A, B);
	CHECK(!strcmp(volume_named(&p, "bcache")->class_missing, "hidden"));
	follow("disk", KIND_DISK, C, C, 0);
	CHECK(!volume_named(&p, "disk")->class_missing[0]);
	leave("bcache");
	no_addresses = false;
	follow("bcache", KIND_BCACHE, 252U << 20, A, B);
	CHECK(!volume_named(&p, "bcache")->class_missing[0]);
}

int main(void)
{
	RUN(roles_are_those_of_the_volumes);
	RUN(a_partition_that_became_one_of_another_disk_is_forgotten);
	RUN(a_backing_device_that_stays_a_cache_device_backs_nothing);
	RUN(nothing_stays_in_whatever_order_volumes_go);
	RUN(programs_are_attached_only_while_a_volume_needs_them);
	RUN(a_disk_below_logical_volumes_needs_no_program);
	RUN(a_volume_that_does_not_fit_leaves_nothing);
	RUN(a_partition_is_refused_where_the_kernel_does_not_tell_it);
	RUN(md_raid0_is_refused_where_its_bios_end_elsewhere);
	RUN(a_device_with_nvme_paths_is_refused_in_any_role);
	RUN(a_volume_too_many_leaves_no_program_attached);
	RUN(misses_are_counted_from_where_the_volume_begins);
	RUN(misses_are_not_counted_where_their_place_is_not_known);
	RUN(misses_of_a_cache_are_attributed_unless_programs_are_inherited);
	RUN(a_volume_without_addresses_is_followed_and_says_so);
	return check_done();
}
