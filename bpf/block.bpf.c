/* SPDX-License-Identifier: GPL-2.0-only */
/* The block layer's tracepoints: arrivals at volumes, completions at devices. */
#include "volume.bpf.h"
#include "device.bpf.h"
#include "path.bpf.h"

/* A bio is sent to a device of a cache. No kernel without atomic instructions follows dm. */
static __always_inline void device_queue(struct bio *bio, struct eb_dev *e, __u32 roles,
					 bool atomics)
{
	__u64 end = (__u64)bio->bi_end_io;

	if (atomics && roles & EB_SERVES_DM && part_sent(bio, e, roles, end))
		return;
	destage_queue(bio, e, roles, end);
}

static __always_inline void bio_queue(struct bio *bio, bool atomics)
{
	struct eb_dev *e = find_dev(bio_dev(bio));
	struct arrival a = {};
	struct eb_cpu *cpu;
	__u32 roles;

	if (!e)
		return;
	roles = e->roles;
	if (roles & EB_HAS_CACHE)
		device_queue(bio, e, roles, atomics);
	if (!(roles & (EB_IS_VOLUME | EB_IS_JOINED)))
		return;
	if (EB_HAS_WARM_READS(roles) && is_warming(bio, false))
		return;
	cpu = this_cpu();
	if (!cpu)
		return;
	a.stamp = arrival_stamp(bio);
	a.opf = bio->bi_opf;
	a.bytes = bio->bi_iter.bi_size;
	/* Before arrive(), which then has nothing to keep: that costs instructions on any path. */
	if (roles & EB_IS_JOINED && (a.opf & EB_OP_MASK) <= REQ_OP_WRITE)
		store_arrival(bio, cpu, e, roles, a, atomics);
	if (roles & EB_IS_VOLUME)
		arrive(bio, cpu, e, roles, a, atomics);
}

/* An end at a plain disk that is a volume; its start was counted by arrive(). */
static __always_inline void disk_complete(struct eb_vol_cpu *c, struct eb_dev *e, __u32 dir,
					  __u32 amount, __u64 now_ns)
{
	c->done[dir] += amount;
	touch(e->volume, now_ns);
}

static __always_inline void rq_complete(struct request *rq, __u32 nr_bytes)
{
	struct eb_dev *e = find_dev(request_dev(rq));
	struct eb_cpu *cpu;
	__u32 op, roles;
	__u64 now_ns;

	if (!e || !nr_bytes)
		return;
	cpu = this_cpu();
	if (!cpu)
		return;
	roles = e->roles;
	op = rq->cmd_flags & EB_OP_MASK;
	if (op > REQ_OP_WRITE) {
		/* Of the other operations arrive() counted only these, and no driver commands. */
		if (roles & EB_IS_DISK && is_special_write(op))
			disk_complete(vol_counters(cpu, e->volume), e, EB_WRITE, nr_bytes,
				      bpf_ktime_get_ns());
		return;
	}
	now_ns = bpf_ktime_get_ns();
	if (roles & (EB_IS_BACKING | EB_IS_CACHE))
		device_complete(rq, cpu, e, roles, op, nr_bytes, now_ns);
	if (roles & EB_IS_DISK)
		disk_complete(vol_counters(cpu, e->volume), e, op, nr_bytes, now_ns);
}

/* A bio ends at a plain disk without having been a request: it was refused (NOWAIT, errors). */
static __always_inline void disk_refused(struct bio *bio, struct eb_cpu *cpu, struct eb_dev *e,
					 __u32 roles, __u32 op)
{
	__u32 bytes = bio->bi_iter.bi_size, dir = op & 1;
	struct eb_vol_cpu *c;

	/* On a device below bcache, users' bios end that were never sent there. */
	if (!(roles & EB_IS_DISK) || roles & EB_HAS_CACHE || is_discard(op))
		return;
	c = vol_counters(cpu, e->volume);
	disk_complete(c, e, dir, bytes, bpf_ktime_get_ns());
	if (!bytes || !(bio->bi_opf & flags.nowait))
		return;
	/* It will be sent again, and arrive() counts it again. */
	c->arrivals[dir].refused_ios++;
	c->arrivals[dir].refused_bytes += bytes;
}

/*
 * A bio completes at a device without requests (dm, md). bcache makes users' bios complete at the
 * backing device even if they were never sent there (a cached write, a hit). So on a device a bio
 * counts only if it was seen to be queued, or if it is a copy, which may have begun before
 * tracking.
 */
static __always_inline void joined_bio_complete(struct bio *bio, struct eb_cpu *cpu,
						struct eb_vol_cpu *c, struct eb_dev *e, __u32 roles,
						__u32 dir, __u64 now_ns)
{
	struct join *j = join_find(&joins, device_key(bio));
	__u32 left = bio->bi_iter.bi_size;

	if (roles & EB_HAS_PARTS)
		volume_done(c, e, j, dir, left, now_ns);
	if (roles & (EB_IS_BACKING | EB_IS_CACHE) && (j || is_copy((__u64)bio->bi_end_io)))
		device_bio_done(bio, cpu, e, roles, dir, j ? j->bytes : left, j ? j->start_ns : 0,
				now_ns);
	if (j)
		j->id = 0;
}

static __always_inline void bio_complete(struct bio *bio)
{
	struct eb_dev *e = find_dev(bio_dev(bio));
	struct eb_vol_cpu *c;
	struct eb_cpu *cpu;
	__u32 op, roles;
	__u64 now_ns;

	if (!e || !(e->roles & (EB_IS_BIO | EB_IS_JOINED | EB_IS_DISK)))
		return;
	roles = e->roles;
	if (EB_HAS_WARM_READS(roles) && is_warming(bio, false))
		return;
	cpu = this_cpu();
	if (!cpu)
		return;
	op = bio->bi_opf & EB_OP_MASK;
	if (!(roles & (EB_IS_BIO | EB_IS_JOINED))) {
		disk_refused(bio, cpu, e, roles, op);
		return;
	}
	now_ns = bpf_ktime_get_ns();
	c = vol_counters(cpu, e->volume);
	if (roles & EB_IS_JOINED && op <= REQ_OP_WRITE)
		joined_bio_complete(bio, cpu, c, e, roles, op, now_ns);
	if (roles & EB_IS_DISK && !is_part(bio) && (op <= REQ_OP_WRITE || !is_discard(op)))
		disk_complete(c, e, op & 1, 1, now_ns);
}

PROGRAM(block_bio_queue, "block_bio_queue", bio_queue(bio, true), struct bio *bio)
PROGRAM_WITH_QUEUE(block_bio_queue, "block_bio_queue", bio_queue(bio, false), struct bio *bio)
PROGRAM(block_rq_complete, "block_rq_complete", rq_complete(rq, nr_bytes), struct request *rq,
	int error, unsigned int nr_bytes)
/* Attached while a plain disk or a device without requests is tracked. */
PROGRAM(block_bio_complete, "block_bio_complete", bio_complete(bio), struct request_queue *q,
	struct bio *bio)

char LICENSE[] SEC("license") = "GPL";
