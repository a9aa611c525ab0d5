/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * bcache's tracepoints: the path of each request, its latency at the volume, the reason of a
 * bypass. At all of them the bio already points to the backing device, which is in the dev_t table.
 */
#include "join.bpf.h"

/* The entry of the bio's backing device; NULL if it does not back a tracked volume. */
static __always_inline struct eb_dev *backing_entry(struct bio *bio)
{
	struct eb_dev *e = find_dev(bio->bi_bdev->bd_dev);

	return e && (e->roles & EB_IS_BACKING) ? e : NULL;
}

static __always_inline void count_path(struct eb_vol_cpu *c, struct bio *bio, __u64 id, __u32 path)
{
	struct eb_flow *flow = &c->path[path];

	flow->ios++;
	flow->bytes += bio->bi_iter.bi_size;
	if (id)
		join_put(c, id, path);
}

/* When a bio arrived, for a kernel that does not stamp it. */
static __always_inline __u64 arrived_ns(const struct eb_vol_cpu *c, __u64 id)
{
	return c->arrived_id == id ? c->arrived_ns : bpf_ktime_get_ns();
}

SEC("tp_btf/bcache_request_start")
int BPF_PROG(bcache_request_start, struct bcache_device *d, struct bio *bio)
{
	struct eb_dev *e = backing_entry(bio);
	struct eb_vol_cpu *c;
	__u32 dir;

	if (!e)
		return 0;
	c = vol_counters(e->backs_slot);
	if (!c)
		return 0;
	dir = bio->bi_opf & 1;
	c->started[dir]++;
	if (dir == EB_WRITE)
		submitter_put(bio_id(bio));
	if (!BIO_STAMPED)
		join_begin(c, bio_id(bio), arrived_ns(c, bio_id(bio)));
	return 0;
}

SEC("tp_btf/bcache_read")
int BPF_PROG(bcache_read, struct bio *bio, bool hit, bool bypass)
{
	struct eb_dev *e = backing_entry(bio);
	struct eb_vol_cpu *c;

	if (!e)
		return 0;
	c = vol_counters(e->backs_slot);
	if (c)
		count_path(c, bio, bio_id(bio),
			   bypass ? EB_READ_BYPASS
			   : hit  ? EB_READ_HIT
				  : EB_READ_MISS);
	return 0;
}

/* Fires for fills (op READ) and discards too, which are not writes of data. */
SEC("tp_btf/bcache_write")
int BPF_PROG(bcache_write, struct cache_set *set, __u64 inode, struct bio *bio, bool writeback,
	     bool bypass)
{
	struct eb_dev *e;
	struct eb_vol_cpu *c;

	if ((bio->bi_opf & OP_MASK) != REQ_OP_WRITE)
		return 0;
	e = backing_entry(bio);
	if (!e)
		return 0;
	c = vol_counters(e->backs_slot);
	if (c)
		count_path(c, bio, submitter_get(),
			   bypass      ? EB_WRITE_BYPASS
			   : writeback ? EB_WRITE_BACK
				       : EB_WRITE_THROUGH);
	return 0;
}

SEC("tp_btf/bcache_request_end")
int BPF_PROG(bcache_request_end, struct bcache_device *d, struct bio *bio)
{
	struct eb_dev *e = backing_entry(bio);
	__u64 now_ns, start_ns = 0;
	struct eb_vol_cpu *c;
	__u32 path, opf;

	if (!e)
		return 0;
	c = vol_counters(e->backs_slot);
	if (!c)
		return 0;
	now_ns = bpf_ktime_get_ns();
	opf = bio->bi_opf;
	path = join_take(bio_id(bio), &start_ns);
	if (path < EB_PATHS)
		count_latency(&c->path[path], BIO_STAMPED ? stamp_age_ns(bio_stamp(bio), now_ns)
							  : now_ns - start_ns);
	else if (!(opf & flags.preflush) && !is_discard(opf & OP_MASK))
		c->lost_unmatched++;
	c->done[opf & 1]++;
	touch(e->backs, now_ns);
	return 0;
}

static __always_inline int count_reason(struct bio *bio, __u32 reason)
{
	struct eb_dev *e = backing_entry(bio);
	struct eb_vol_cpu *c;

	if (!e)
		return 0;
	c = vol_counters(e->backs_slot);
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
