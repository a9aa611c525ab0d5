// SPDX-License-Identifier: GPL-2.0-only
/* The programs of bcache's tracepoints, called in the order of the kernel. */
#include "check.h"
#include "programs_on_host.h"
#include "bcache.bpf.c"

#define BACKING (8U << 20)
#define VOLUME 3
#define US 1000ULL

static struct block_device backing = { BACKING };
static struct eb_vol_cpu *c = &counters.volume[VOLUME];
/* Where the data of each request begins: pages[n]. */
static char pages[4][4096];

static void begin(void)
{
	forget_all();
	shared.endio[EB_END_CHAIN] = EB_NO_ENDIO;
}

static void track_volume(void)
{
	show_device((struct eb_dev){ .dev = BACKING, .roles = EB_IS_BACKING, .backs = VOLUME });
}

static struct bio request(int n, __u32 opf)
{
	return (struct bio){
		.bi_bdev = &backing,
		.bi_opf = opf,
		.bi_iter = { .bi_sector = 8 * n, .bi_size = 4096 },
		.bi_io_vec = pages[n],
	};
}

static void write_through_the_cache(struct bio *bio)
{
	struct bio clone = *bio;

	on_bcache_write(NULL, 0, &clone, true, false);
}

static void a_write_is_counted_with_its_latency_when_it_ends(void)
{
	struct bio bio = request(1, REQ_OP_WRITE);

	begin();
	track_volume();
	on_bcache_request_start(NULL, &bio);
	write_through_the_cache(&bio);
	CHECK_EQ(c->path[EB_WRITE_BACK].ios, 0);
	clock_ns += 300 * US;
	on_bcache_request_end(NULL, &bio);
	CHECK_EQ(c->path[EB_WRITE_BACK].ios, 1);
	CHECK_EQ(c->path[EB_WRITE_BACK].bytes, 4096);
	CHECK_EQ(c->path[EB_WRITE_BACK].lat[hist_lat_bucket(300)], 1);
	CHECK_EQ(c->done[EB_WRITE], 1);
	CHECK_EQ(c->lost_unmatched, 0);
}

static void a_stamped_write_has_the_latency_since_its_stamp(void)
{
	struct bio bio = request(1, REQ_OP_WRITE);

	begin();
	kernel_stamps_bios = true;
	track_volume();
	bio.stamp = clock_ns;
	write_through_the_cache(&bio);
	clock_ns += 300 * US;
	on_bcache_request_end(NULL, &bio);
	CHECK_EQ(c->path[EB_WRITE_BACK].lat[hist_lat_bucket(300)], 1);
}

/* The programs run from before the volume is shown to them. */
static void a_write_that_began_before_tracking_has_no_latency(void)
{
	struct bio bio = request(1, REQ_OP_WRITE);

	begin();
	on_bcache_request_start(NULL, &bio);
	write_through_the_cache(&bio);
	track_volume();
	clock_ns += 300 * US;
	on_bcache_request_end(NULL, &bio);
	CHECK_EQ(c->path[EB_WRITE_BACK].ios, 1);
	CHECK_EQ(latencies(&c->path[EB_WRITE_BACK]), 0);
}

/* Nor has it that of the request whose place in the table it takes. */
static void no_request_has_the_latency_of_an_earlier_one(void)
{
	struct bio first = request(1, REQ_OP_WRITE), later = request(1, REQ_OP_WRITE);

	begin();
	track_volume();
	on_bcache_request_start(NULL, &first);
	write_through_the_cache(&first);
	on_bcache_request_end(NULL, &first);
	CHECK_EQ(latencies(&c->path[EB_WRITE_BACK]), 1);
	shared.dev[BACKING * EB_DEV_HASH >> 24].roles = 0;
	on_bcache_request_start(NULL, &later);
	write_through_the_cache(&later);
	track_volume();
	clock_ns += 3600 * (1000000 * US);
	on_bcache_request_end(NULL, &later);
	CHECK_EQ(c->path[EB_WRITE_BACK].ios, 2);
	CHECK_EQ(latencies(&c->path[EB_WRITE_BACK]), 1);
}

static void a_missed_read_that_began_before_tracking_has_no_latency(void)
{
	struct bio bio = request(1, REQ_OP_READ);

	begin();
	on_bcache_request_start(NULL, &bio);
	track_volume();
	on_bcache_read(&bio, false, false);
	on_bcache_request_end(NULL, &bio);
	CHECK_EQ(c->path[EB_READ_MISS].ios, 1);
	CHECK_EQ(latencies(&c->path[EB_READ_MISS]), 0);
	CHECK_EQ(c->done[EB_READ], 1);
}

/* Fills the set of a request with others that have begun. */
static void fill_set(struct bio *bio)
{
	struct join_set *set = join_set_of(&joins, data_id(bio, false));

	for (int i = 0; i < JOIN_WAYS; i++) {
		set->way[i].id = 8 * (i + 1) | EB_WRITE_BACK;
		set->way[i].start_ns = clock_ns;
		set->way[i].bytes = 512;
	}
}

static void a_request_that_was_pushed_out_has_no_latency(void)
{
	struct bio bio = request(1, REQ_OP_WRITE);

	begin();
	track_volume();
	on_bcache_request_start(NULL, &bio);
	fill_set(&bio);
	write_through_the_cache(&bio);
	CHECK_EQ(c->lost_table, 1);
	CHECK_EQ(c->path[EB_WRITE_BACK].bytes, 512);
	clock_ns += 300 * US;
	on_bcache_request_end(NULL, &bio);
	CHECK_EQ(c->path[EB_WRITE_BACK].ios, 2);
	CHECK_EQ(latencies(&c->path[EB_WRITE_BACK]), 0);
}

int main(void)
{
	RUN(a_write_is_counted_with_its_latency_when_it_ends);
	RUN(a_stamped_write_has_the_latency_since_its_stamp);
	RUN(a_write_that_began_before_tracking_has_no_latency);
	RUN(no_request_has_the_latency_of_an_earlier_one);
	RUN(a_missed_read_that_began_before_tracking_has_no_latency);
	RUN(a_request_that_was_pushed_out_has_no_latency);
	return check_done();
}
