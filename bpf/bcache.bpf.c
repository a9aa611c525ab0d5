/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * bcache's own tracepoints: the path that each request took, its latency at the
 * volume, the reason of a bypass. At all of them the bio already points to the
 * backing device, so the same dev_t table serves.
 *
 * The path is known at bcache_read and bcache_write, the end at bcache_request_end: a
 * small hash by bio pointer joins them (the request itself cannot be reached from the bio).
 */
#include "maps.bpf.h"

/* 4096 pairs: 256 writes in flight meet a full pair once in a thousand times. */
#define JOIN_BITS 12
#define JOIN_PATH_MASK 7ULL

/* Identity of a bio, with the path in its low bits. */
static __u64 join[1 << JOIN_BITS][2];

/*
 * bcache_write shows a clone, not the request's bio; but it fires in the task that
 * just passed bcache_request_start. By task, not CPU: in between it may sleep.
 */
#define SUBMITTERS 1024
static struct submitter {
	__u64 task;
	__u64 bio;
} submitters[SUBMITTERS];

/*
 * A bio's identity as a number. The verifier refuses to hash a kernel pointer, but it
 * allows the distance of two pointers; both are 8-byte aligned, so the low bits are free.
 */
static __always_inline __u64 bio_id(struct bio *bio)
{
	__u64 id = (__u64)bio, origin = (__u64)&shared;

	asm volatile("%0 -= %1" : "+r"(id) : "r"(origin));
	return id;
}

static __always_inline __u64 *join_pair(__u64 bio)
{
	return join[(bio * 0x9E3779B97F4A7C15ULL) >> (64 - JOIN_BITS)];
}

static __always_inline void join_put(struct eb_vol_cpu *c, __u64 bio, __u32 path)
{
	__u64 *pair = join_pair(bio);
	__u64 first = pair[0] & ~JOIN_PATH_MASK, second = pair[1] & ~JOIN_PATH_MASK;

	if (!first || first == bio) {
		pair[0] = bio | path;
	} else {
		if (second && second != bio)
			c->lost_table++;
		pair[1] = bio | path;
	}
}

/* The path of a request that ends, or EB_PATHS when it is not known. */
static __always_inline __u32 join_take(__u64 bio)
{
	__u64 *pair = join_pair(bio);
	__u64 entry = pair[0];

	if ((entry & ~JOIN_PATH_MASK) == bio) {
		pair[0] = 0;
		return entry & JOIN_PATH_MASK;
	}
	entry = pair[1];
	if ((entry & ~JOIN_PATH_MASK) == bio) {
		pair[1] = 0;
		return entry & JOIN_PATH_MASK;
	}
	return EB_PATHS;
}

/* The entry of a bio's backing device when it backs a tracked volume. */
static __always_inline struct eb_dev *backed(struct bio *bio)
{
	struct eb_dev *e = find_dev(bio->bi_bdev->bd_dev);

	return e && (e->roles & EB_IS_BACKING) ? e : NULL;
}

static __always_inline __u64 current_task(void)
{
	return (__u32)bpf_get_current_pid_tgid();
}

static __always_inline int count_path(struct eb_vol_cpu *c, struct bio *bio, __u64 request,
				      __u32 path)
{
	c->path_ios[path]++;
	c->path_bytes[path] += bio->bi_iter.bi_size;
	if (request)
		join_put(c, request, path);
	return 0;
}

SEC("tp_btf/bcache_request_start")
int BPF_PROG(bcache_request_start, struct bcache_device *d, struct bio *bio)
{
	struct eb_dev *e = backed(bio);
	struct eb_vol_cpu *c;
	struct submitter *s;
	__u32 dir;

	if (!e)
		return 0;
	c = vol_counters(e->backs);
	if (!c)
		return 0;
	dir = bio->bi_opf & 1;
	c->started[dir]++;
	if (dir == EB_WRITE) {
		__u64 task = current_task();

		s = &submitters[task & (SUBMITTERS - 1)];
		s->task = task;
		s->bio = bio_id(bio);
	}
	return 0;
}

SEC("tp_btf/bcache_read")
int BPF_PROG(bcache_read, struct bio *bio, bool hit, bool bypass)
{
	struct eb_dev *e = backed(bio);
	struct eb_vol_cpu *c;

	if (!e)
		return 0;
	c = vol_counters(e->backs);
	if (!c)
		return 0;
	return count_path(c, bio, bio_id(bio),
			  bypass ? EB_READ_BYPASS
			  : hit	 ? EB_READ_HIT
				 : EB_READ_MISS);
}

/* Fires for fills (op READ) too; discards are no path of data. */
SEC("tp_btf/bcache_write")
int BPF_PROG(bcache_write, struct cache_set *set, __u64 inode, struct bio *bio, bool writeback,
	     bool bypass)
{
	struct eb_dev *e;
	struct eb_vol_cpu *c;
	struct submitter *s;
	__u64 task;

	if ((bio->bi_opf & OP_MASK) != REQ_OP_WRITE)
		return 0;
	e = backed(bio);
	if (!e)
		return 0;
	c = vol_counters(e->backs);
	if (!c)
		return 0;
	task = current_task();
	s = &submitters[task & (SUBMITTERS - 1)];
	return count_path(c, bio, s->task == task ? s->bio : 0,
			  bypass      ? EB_WRITE_BYPASS
			  : writeback ? EB_WRITE_BACK
				      : EB_WRITE_THROUGH);
}

static __always_inline void request_latency(struct eb_vol_cpu *c, struct bio *bio, __u32 path,
					    __u64 now_ns)
{
	__u32 bucket = hist_lat_bucket(hist_us(stamp_age_ns(bio_stamp(bio), now_ns)));

	c->path_lat[path][bounded(bucket, HIST_LAT_BUCKETS)]++;
}

SEC("tp_btf/bcache_request_end")
int BPF_PROG(bcache_request_end, struct bcache_device *d, struct bio *bio)
{
	struct eb_dev *e = backed(bio);
	__u64 now_ns = bpf_ktime_get_ns();
	struct eb_vol_cpu *c;
	__u32 path, opf;

	if (!e)
		return 0;
	c = vol_counters(e->backs);
	if (!c)
		return 0;
	opf = bio->bi_opf;
	path = join_take(bio_id(bio));
	if (path < EB_PATHS)
		request_latency(c, bio, path, now_ns);
	else if (!is_discard(opf & OP_MASK) && !(opf & FLAG(__REQ_PREFLUSH)))
		c->lost_unmatched++;
	c->done[opf & 1]++;
	touch(e->backs, now_ns);
	return 0;
}

static __always_inline int count_reason(struct bio *bio, __u32 reason)
{
	struct eb_dev *e = backed(bio);
	struct eb_vol_cpu *c;

	if (!e)
		return 0;
	c = vol_counters(e->backs);
	if (!c)
		return 0;
	c->reason_ios[reason]++;
	c->reason_bytes[reason] += bio->bi_iter.bi_size;
	return 0;
}

SEC("tp_btf/bcache_bypass_sequential")
int BPF_PROG(bcache_bypass_sequential, struct bio *bio)
{
	return count_reason(bio, EB_SEQUENTIAL);
}

SEC("tp_btf/bcache_bypass_congested")
int BPF_PROG(bcache_bypass_congested, struct bio *bio)
{
	return count_reason(bio, EB_CONGESTED);
}

char LICENSE[] SEC("license") = "GPL";
