// SPDX-License-Identifier: GPL-2.0-only
/* Which signals a volume gives, by what is known of its devices. */
#include "tracked.h"

static void misses_are_counted_from_where_the_volume_begins(void)
{
	begin();
	follow("bcache", KIND_BCACHE, 252U << 20, B, C);
	CHECK_EQ(shared.vol[0].data_sector, 16);
	CHECK(volume_named(&p, "bcache")->has_heat);
	follow("dm", KIND_DM_CACHE, 253U << 20, MD, C);
	CHECK_EQ(shared.vol[1].data_sector, 0);
	CHECK(volume_named(&p, "dm")->has_heat);
	partition_of_a = A | 1;
	follow("parted", KIND_DM_CACHE, 253U << 20 | 1, A | 1, C);
	CHECK_EQ(shared.vol[2].data_sector, 1ULL << 33);
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

static void reads_of_a_warm_up_do_not_count_at_a_cached_volume(void)
{
	for (int inherits = 0; inherits < 2; inherits++) {
		begin();
		p.inherits = inherits;
		follow("bcache", KIND_BCACHE, 252U << 20, A, C);
		CHECK(EB_HAS_WARM_READS(entry(252U << 20).roles));
		follow("dm", KIND_DM_CACHE, 253U << 20, MD, B);
		CHECK(EB_HAS_WARM_READS(entry(253U << 20).roles));
		follow("disk", KIND_DISK, C, C, 0);
		CHECK(!EB_HAS_WARM_READS(entry(C).roles));
		CHECK(!EB_HAS_WARM_READS(entry(B).roles));
	}
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
	RUN(misses_are_counted_from_where_the_volume_begins);
	RUN(misses_are_not_counted_where_their_place_is_not_known);
	RUN(misses_of_a_cache_are_attributed_unless_programs_are_inherited);
	RUN(a_volume_without_addresses_is_followed_and_says_so);
	RUN(reads_of_a_warm_up_do_not_count_at_a_cached_volume);
	return check_done();
}
