// SPDX-License-Identifier: GPL-2.0-only
/* The programs of the block layer's tracepoints, called in the order of the kernel. */
#include "check.h"
#include "programs_on_host.h"
#include "block.bpf.c"

#define DEVICE (9U << 20)
#define VOLUME 3
#define INDEX 5
#define MS 1000000ULL

static struct block_device below = { DEVICE };
static struct eb_vol_cpu *c = &counters.volume[VOLUME];
static struct eb_dev_cpu *d = &counters.device[INDEX];

/* The backing device of a volume of bcache. */
static void begin(__u32 roles)
{
	forget_all();
	for (int i = 0; i < EB_ENDIOS; i++)
		shared.endio[i] = EB_NO_ENDIO;
	show_device((struct eb_dev){ .dev = DEVICE,
				     .roles = EB_IS_BACKING | EB_HAS_CACHE | roles,
				     .backs = VOLUME,
				     .device = INDEX });
}

static struct bio write_of(__u32 bytes, __u32 flags)
{
	return (struct bio){
		.bi_bdev = &below,
		.bi_opf = REQ_OP_WRITE | flags,
		.bi_iter = { .bi_sector = 4096, .bi_size = bytes },
		.bi_end_io = (void *)0x1000,
	};
}

static void write_that_takes(__u64 ns, __u32 bytes, __u32 flags)
{
	struct bio bio = write_of(bytes, flags);

	on_block_bio_queue(&bio);
	clock_ns += ns;
	on_block_bio_complete(NULL, &bio);
}

static __u64 gaps(void)
{
	__u64 sum = 0;

	for (int i = 0; i < HIST_LOG2_BUCKETS; i++)
		sum += c->gaps[i];
	return sum;
}

static struct eb_flow *flow(__u32 class)
{
	return &d->flow[EB_WRITE * EB_CLASSES + class];
}

static void a_bio_of_a_device_without_requests_is_counted_with_its_latency(void)
{
	begin(EB_IS_BIO | EB_IS_JOINED);
	shared.endio[EB_END_BACKING] = 0x1000;
	write_that_takes(3 * MS, 8192, 0);
	CHECK_EQ(flow(EB_FG)->ios, 1);
	CHECK_EQ(flow(EB_FG)->bytes, 8192);
	CHECK_EQ(flow(EB_FG)->lat[hist_lat_bucket(3000)], 1);
}

/* As on a device with requests. */
static void a_flush_is_no_write_of_a_device_without_requests(void)
{
	begin(EB_IS_BIO | EB_IS_JOINED);
	shared.endio[EB_END_BACKING] = 0x1000;
	write_that_takes(30 * MS, 0, REQ_PREFLUSH);
	CHECK_EQ(flow(EB_FG)->ios, 0);
	CHECK_EQ(latencies(flow(EB_FG)), 0);
	/* One with data is a write. */
	write_that_takes(30 * MS, 4096, REQ_PREFLUSH);
	CHECK_EQ(flow(EB_FG)->ios, 1);
}

/* It lies below a volume of dm, whose parts come with paths; its own requests have none. */
static void a_volume_of_bcache_below_dm_has_no_paths_of_dm(void)
{
	begin(EB_IS_VOLUME | EB_IS_DM | EB_IS_JOINED | EB_SERVES_DM);
	shared.dev[DEVICE * EB_DEV_HASH >> 24].volume = VOLUME;
	write_that_takes(3 * MS, 4096, 0);
	CHECK_EQ(c->arrivals[EB_WRITE].ios, 1);
	CHECK_EQ(c->lost_unmatched, 0);
}

static void a_gap_is_none_while_a_write_waits_though_reads_from_before_have_ended(void)
{
	struct bio bio = write_of(4096, 0);

	begin(EB_IS_VOLUME);
	shared.dev[DEVICE * EB_DEV_HASH >> 24].volume = VOLUME;
	shared.vol[VOLUME].last_ns = clock_ns;
	on_block_bio_queue(&bio);
	c->done[EB_READ] += 5;
	clock_ns += 500 * MS;
	on_block_bio_queue(&bio);
	CHECK_EQ(gaps(), 0);
	/* Without the write there is one. */
	c->done[EB_WRITE] += 2;
	clock_ns += 500 * MS;
	on_block_bio_queue(&bio);
	CHECK_EQ(gaps(), 1);
}

int main(void)
{
	RUN(a_bio_of_a_device_without_requests_is_counted_with_its_latency);
	RUN(a_flush_is_no_write_of_a_device_without_requests);
	RUN(a_volume_of_bcache_below_dm_has_no_paths_of_dm);
	RUN(a_gap_is_none_while_a_write_waits_though_reads_from_before_have_ended);
	return check_done();
}
