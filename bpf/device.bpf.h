/* SPDX-License-Identifier: GPL-2.0-only */
/* Cache and backing devices: latency by direction and class, destage in flight. */
#ifndef EBBGATE_DEVICE_BPF_H
#define EBBGATE_DEVICE_BPF_H

#include "edges.bpf.h"
#include "join.bpf.h"

/* Bios of a merged request that are looked at; more are counted as lost. */
#define CHAIN_MAX 256

/*
 * The completion function of the sender. The front part of a bio that was split (bcache merges
 * keys, devices have limits) has another one, and its parent in bi_private.
 */
static __always_inline __u64 sender_end_io(struct bio *bio)
{
	__u64 end = (__u64)bio->bi_end_io;

	if (end == shared.endio[EB_END_CHAIN] && end)
		bpf_probe_read_kernel(&end, sizeof(end),
				      bio->bi_private + bpf_core_field_offset(bio->bi_end_io));
	return end;
}

/* A copy between the two devices: destage, and with dm also promotion. */
static __always_inline bool is_copy(__u64 end_io)
{
	return end_io == shared.endio[EB_END_DIRTY] || end_io == shared.endio[EB_END_READ_DIRTY] ||
	       end_io == shared.endio[EB_END_DM_IO];
}

/* Destage only reads the cache device and writes the backing device. */
static __always_inline bool may_destage(__u32 roles, __u32 dir)
{
	return (roles & EB_HAS_CACHE) && (roles & (dir == EB_WRITE ? EB_IS_BACKING : EB_IS_CACHE));
}

/* All but writes to the cache device: there dm-io also writes metadata. */
static __always_inline bool may_copy(__u32 roles, __u32 dir)
{
	return (roles & EB_HAS_CACHE) && (dir == EB_READ || (roles & EB_IS_BACKING));
}

/*
 * A bio within another struct that has no pages of its own. bcache writes users' data with one
 * (struct search) unless it splits it; its fills come from a pool, and moves of garbage collection
 * have pages.
 */
static __always_inline bool is_embedded_clone(struct bio *bio)
{
	return !bio->bi_pool && !bio->bi_max_vecs;
}

/* The same of the bio that a front part was split from. It has no type for the verifier. */
static __always_inline bool is_embedded_parent(struct bio *parent)
{
	return !READ_KERNEL(parent, bi_pool) && !READ_KERNEL(parent, bi_max_vecs);
}

/*
 * bcache writes users' data and fills (copies of missed reads, moves of garbage collection)
 * through one function; its struct data_insert_op, in bi_private, tells them apart. A front part
 * has its parent there.
 */
static __always_inline bool is_fill(struct bio *bio)
{
	void *op;
	__u64 word = 0;

	if (!shared.fill_mask || is_embedded_clone(bio))
		return false;
	op = bio->bi_private;
	if (UNLIKELY(is_part(bio))) {
		if (is_embedded_parent(op))
			return false;
		op = READ_KERNEL((struct bio *)op, bi_private);
	}
	bpf_probe_read_kernel(&word, sizeof(word), op + shared.fill_offset);
	return word & shared.fill_mask;
}

static __always_inline __u32 class_of(struct bio *bio, __u64 end_io, __u32 roles)
{
	if (!(roles & EB_HAS_CACHE))
		return EB_FG;
	if (end_io == shared.endio[EB_END_CACHE_READ] || end_io == shared.endio[EB_END_BACKING])
		return EB_FG;
	if (end_io == shared.endio[EB_END_DATA_INSERT])
		return is_fill(bio) ? EB_BG : EB_FG;
	if (end_io == shared.endio[EB_END_DM_CLONE] || end_io == shared.endio[EB_END_OVERWRITE])
		return EB_FG;
	return EB_BG;
}

static __always_inline struct eb_flow *flow_of(struct eb_dev_cpu *c, __u32 dir, __u32 class)
{
	__u32 i = dir * EB_CLASSES + class;

	/* So that the verifier sees the bound. */
	OPAQUE(i);
	return &c->flow[i & (EB_DIRS * EB_CLASSES - 1)];
}

/* bcc/compat.bpf.h has another: there bcache.bpf.c uses the same table for the same bios. */
#ifndef device_key
#define device_key bio_id
#endif

/*
 * A device without requests may split a bio (md and dm do, and stamp the rest again) and pass parts
 * or all of it to other devices. So its size and its start are kept, and parts do not count.
 */
static __always_inline void store_arrival(struct bio *bio, struct eb_cpu *cpu, struct eb_dev *e,
					  __u32 roles, struct arrival new, bool atomics)
{
	unsigned long long lost = 0;
	__u64 id = device_key(bio);
	struct submitter *s;
	struct join *j;

	/* A flush without data is no write, as on a disk; dm passes it on in another way. */
	if (!new.bytes)
		return;
	j = join_enter(&joins, id, 0, atomics, &lost);
	j->start_ns = new.stamp;
	j->bytes = new.bytes;
	j->volume = roles & EB_HAS_PARTS ? e->volume + 1 : 0;
	if (UNLIKELY(lost))
		vol_counters(cpu, roles & EB_IS_VOLUME ? e->volume : e->backs)->lost_table++;
	if (!(roles & EB_HAS_PARTS))
		return;
	/* For path.bpf.h. */
	s = submitter_put(id);
	s->pages = (__u64)bio->bi_io_vec;
	s->bytes = new.bytes;
}

/* A bio is sent to a device of a cache: destage counts. */
static __always_inline void destage_queue(struct bio *bio, struct eb_dev *e, __u32 roles, __u64 end)
{
	struct eb_dev_cpu *c;
	struct eb_cpu *cpu;

	if (!is_copy(end) || !may_destage(roles, bio->bi_opf & 1))
		return;
	cpu = this_cpu();
	if (!cpu)
		return;
	c = dev_counters(cpu, e->device);
	c->queued_ios++;
	c->queued_bytes += bio->bi_iter.bi_size;
}

/* Pushes an edge if no destage is in flight any more. */
static __always_inline void destage_drained(struct eb_cpu *cpu, struct eb_dev *e, __u64 now_ns)
{
	__s64 n = volume_of(e->backs)->destage_unseen;

	for (__u32 i = 0; i < ncpu && i < EB_CPUS_MAX; i++) {
		struct eb_cpu *other = counters_of(i);
		struct eb_dev_cpu *d;

		if (!other)
			return;
		d = dev_counters(other, e->device);
		n += d->queued_ios - d->copied[EB_DESTAGE].ios;
	}
	if (!n)
		push_edge(vol_counters(cpu, e->backs), e->backs, EB_EDGE_DRAINED, now_ns, 0);
}

/*
 * The counter of a copy: EB_PROMOTION for a read of the backing device, else EB_DESTAGE. Computed
 * without a branch, after which the verifier would walk through all that follows twice.
 */
static __always_inline __u32 copy_kind(__u32 roles, __u32 dir)
{
	return (roles & EB_IS_BACKING) / EB_IS_BACKING & ~dir & 1;
}

/* Counts a completed request bio by bio: requests are merged and may complete in parts. */
static __always_inline void copy_done(struct eb_dev_cpu *c, struct bio *bio, __u32 kind,
				      __u32 nr_bytes)
{
	struct eb_copied *copied = &c->copied[kind];

	for (int i = 0; i < CHAIN_MAX; i++) {
		__u64 end = (__u64)bio->bi_end_io;
		__u32 bytes = bio->bi_iter.bi_size;

		if (is_copy(sender_end_io(bio))) {
			/* A bio that was split was queued once. */
			if (bytes <= nr_bytes && end != shared.endio[EB_END_CHAIN])
				copied->ios++;
			copied->bytes += bytes < nr_bytes ? bytes : nr_bytes;
		}
		if (bytes >= nr_bytes)
			return;
		nr_bytes -= bytes;
		bio = bio->bi_next;
		if (!bio)
			return;
	}
	c->lost_chain++;
}

/* Whether the loader paces destage and needs a record when none is in flight any more. */
static __always_inline bool drain_is_awaited(struct eb_dev *e, __u32 roles, __u32 dir)
{
	return dir == EB_WRITE && (roles & EB_IS_BACKING) && volume_of(e->backs)->paced;
}

static __always_inline void device_complete(struct request *rq, struct eb_cpu *cpu,
					    struct eb_dev *e, __u32 roles, __u32 dir,
					    __u32 nr_bytes, __u64 now_ns)
{
	struct eb_dev_cpu *c = dev_counters(cpu, e->device);
	struct bio *bio = rq->bio;
	struct eb_flow *flow;
	__u64 start_ns, end;
	__u32 class;

	if (!bio)
		return;
	end = roles & EB_HAS_CACHE ? sender_end_io(bio) : 0;
	class = class_of(bio, end, roles);
	flow = flow_of(c, dir, class);
	flow->bytes += nr_bytes;
	/* The last part of a request that completes in parts. */
	if (rq->__data_len <= nr_bytes) {
		flow->ios++;
		start_ns = rq->start_time_ns;
		/* 0: I/O statistics are off for this queue. */
		if (start_ns)
			count_latency(flow, now_ns - start_ns);
	}
	if (!may_copy(roles, dir) || ((class == EB_FG || !is_copy(end)) && bio == rq->biotail))
		return;
	copy_done(c, bio, copy_kind(roles, dir), nr_bytes);
	if (drain_is_awaited(e, roles, dir))
		destage_drained(cpu, e, now_ns);
}

/* The end of a bio at a device without requests; stamp 0: its arrival is not known. */
static __always_inline void device_bio_done(struct bio *bio, struct eb_cpu *cpu, struct eb_dev *e,
					    __u32 roles, __u32 dir, __u32 bytes, __u64 stamp,
					    __u64 now_ns)
{
	struct eb_dev_cpu *c = dev_counters(cpu, e->device);
	/* dm-cache chains the second bio of a write-through to the first. */
	__u64 end = roles & EB_HAS_CACHE ? sender_end_io(bio) : 0;
	__u32 class = class_of(bio, end, roles);
	struct eb_flow *flow = flow_of(c, dir, class);

	flow->ios++;
	flow->bytes += bytes;
	if (stamp)
		count_latency(flow, stamp_age_ns(stamp, now_ns));
	if (class == EB_FG || !may_copy(roles, dir) || !is_copy((__u64)bio->bi_end_io))
		return;
	c->copied[copy_kind(roles, dir)].ios++;
	c->copied[copy_kind(roles, dir)].bytes += bytes;
	if (drain_is_awaited(e, roles, dir))
		destage_drained(cpu, e, now_ns);
}

#endif
