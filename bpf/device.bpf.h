/* SPDX-License-Identifier: GPL-2.0-only */
/* The cache and backing devices: latency by direction and class, and the destage in flight. */
#ifndef EBBGATE_DEVICE_BPF_H
#define EBBGATE_DEVICE_BPF_H

#include "maps.bpf.h"

/* A merged request holds at most this many bios here; the rest is counted as lost. */
#define CHAIN_MAX 256

static __always_inline bool is_destage(const void *end_io)
{
	__u64 end = (__u64)end_io;

	return end == shared.endio[EB_END_DIRTY] || end == shared.endio[EB_END_READ_DIRTY];
}

static __always_inline void device_queue(struct bio *bio, struct eb_dev *e)
{
	struct eb_dev_cpu *c;

	if (!is_destage(bio->bi_end_io))
		return;
	c = dev_counters(e->device);
	if (!c)
		return;
	c->destage_queued_ios++;
	c->destage_queued_bytes += bio->bi_iter.bi_size;
}

/* A completion that only part of a request's bios share: walk them. */
static __always_inline void destage_done(struct eb_dev_cpu *c, struct bio *bio, __u32 nr_bytes)
{
	for (int i = 0; i < CHAIN_MAX; i++) {
		__u32 bytes = bio->bi_iter.bi_size;
		bool all = bytes <= nr_bytes;

		if (is_destage(bio->bi_end_io)) {
			c->destage_done_ios += all;
			c->destage_done_bytes += all ? bytes : nr_bytes;
		}
		if (!all || bytes == nr_bytes)
			return;
		nr_bytes -= bytes;
		bio = bio->bi_next;
		if (!bio)
			return;
	}
	c->lost_chain++;
}

/* The loader paces this volume's destage: say at once when none is left in flight. */
static __always_inline void destage_drained(struct eb_dev *e, __u64 now_ns)
{
	struct eb_vol_cpu *c = vol_counters(e->backs);
	__s64 n = 0;

	for (__u32 cpu = 0; cpu < ncpu && cpu < EB_CPUS_MAX; cpu++) {
		__u32 key = e->device * ncpu + cpu;
		struct eb_dev_cpu *d = bpf_map_lookup_elem(&dev_cpu, &key);

		if (!d)
			return;
		n += d->destage_queued_ios - d->destage_done_ios;
	}
	if (!n && c)
		push_edge(c, e->backs, EB_EDGE_DRAINED, now_ns, 0);
}

static __always_inline __u32 class_of(__u32 roles, const void *end_io)
{
	__u64 end = (__u64)end_io;

	if (roles & EB_IS_DISK)
		return EB_FG;
	if (end == shared.endio[EB_END_BACKING] || end == shared.endio[EB_END_CACHE_READ] ||
	    end == shared.endio[EB_END_DATA_INSERT])
		return EB_FG;
	return EB_BG;
}

static __always_inline void device_latency(struct eb_dev_cpu *c, struct request *rq, __u32 dir,
					   __u32 class, __u64 now_ns)
{
	__u64 start_ns = rq->start_time_ns;
	__u32 bucket;

	c->ios[dir][class]++;
	/* Not stamped: I/O statistics are off for this queue. */
	if (!start_ns || now_ns < start_ns)
		return;
	bucket = hist_lat_bucket(hist_us(now_ns - start_ns));
	c->lat[dir][class][bounded(bucket, HIST_LAT_BUCKETS)]++;
}

static __always_inline void device_complete(struct request *rq, __u32 nr_bytes, __u32 dir,
					    struct eb_dev *e, __u64 now_ns)
{
	struct eb_dev_cpu *c = dev_counters(e->device);
	struct bio *bio = rq->bio;
	__u32 class;

	if (!c || !bio)
		return;
	class = class_of(e->roles, bio->bi_end_io);
	c->bytes[dir][class] += nr_bytes;
	/* The last part of a request that completes in parts. */
	if (rq->__data_len <= nr_bytes)
		device_latency(c, rq, dir, class, now_ns);
	if (is_destage(bio->bi_end_io) || bio != rq->biotail)
		destage_done(c, bio, nr_bytes);
	if (is_destage(bio->bi_end_io) && (e->roles & EB_IS_BACKING) && volume_of(e->backs)->paced)
		destage_drained(e, now_ns);
}

#endif
