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
 * bcache writes users' data and fills (copies of missed reads, moves of garbage collection)
 * through one function; its struct data_insert_op, in bi_private, tells them apart.
 */
static __always_inline bool is_fill(struct bio *bio)
{
	__u64 word = 0;

	if (shared.fill_mask)
		bpf_probe_read_kernel(&word, sizeof(word), bio->bi_private + shared.fill_offset);
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
	return &c->flow[bounded(dir * EB_CLASSES + class, EB_DIRS * EB_CLASSES)];
}

/* bcc/compat.bpf.h has another: there bcache.bpf.c uses the same table for the same bios. */
#ifndef device_key
#define device_key bio_id
#endif

/*
 * A device without requests may split a bio (md and dm do, and stamp the rest again) and pass parts
 * or all of it to other devices. So its size and its start are kept, and parts do not count.
 */
static __always_inline void store_arrival(struct bio *bio, struct eb_dev *e, __u32 roles,
					  __u64 stamp)
{
	struct eb_vol_cpu *c = vol_counters(roles & EB_IS_VOLUME ? e->volume_slot : e->backs_slot);
	__u32 bytes = bio->bi_iter.bi_size;
	struct join *j;
	__u64 id;

	/* dm passes a request without data on in another way. */
	if (!c || (roles & EB_IS_DM && !bytes))
		return;
	id = device_key(bio);
	j = join_of(c, id);
	j->id = id;
	j->start_ns = stamp;
	j->bytes = bytes;
}

/* A device whose bios are followed from their arrival to their end. */
static __always_inline bool is_joined(__u32 roles)
{
	return roles & EB_IS_DM || (roles & EB_IS_BIO && roles & (EB_IS_BACKING | EB_IS_CACHE));
}

static __always_inline void device_queue(struct bio *bio, struct eb_dev *e, __u32 roles,
					 __u64 stamp)
{
	struct eb_dev_cpu *c;

	if (is_joined(roles) && (bio->bi_opf & OP_MASK) <= REQ_OP_WRITE)
		store_arrival(bio, e, roles, stamp);
	if (!is_copy((__u64)bio->bi_end_io) || !may_destage(roles, bio->bi_opf & 1))
		return;
	c = dev_counters(e->device_slot);
	if (!c)
		return;
	c->queued_ios++;
	c->queued_bytes += bio->bi_iter.bi_size;
}

/* Pushes an edge if no destage is in flight any more. */
static __always_inline void destage_drained(struct eb_dev *e, __u64 now_ns)
{
	struct eb_vol_cpu *c = vol_counters(e->backs_slot);
	__s64 n = volume_of(e->backs)->destage_unseen;

	for (__u32 cpu = 0; cpu < ncpu && cpu < EB_CPUS_MAX; cpu++) {
		__u32 key = e->device_slot + cpu;
		struct eb_dev_cpu *d = bpf_map_lookup_elem(&dev_cpu, &key);

		if (!d)
			return;
		n += d->queued_ios - d->copied[EB_DESTAGE].ios;
	}
	if (!n && c)
		push_edge(c, e->backs, EB_EDGE_DRAINED, now_ns, 0);
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

static __always_inline void device_complete(struct request *rq, struct eb_dev *e, __u32 roles,
					    __u32 dir, __u32 nr_bytes, __u64 now_ns)
{
	struct eb_dev_cpu *c = dev_counters(e->device_slot);
	struct bio *bio = rq->bio;
	struct eb_flow *flow;
	__u64 start_ns, end;

	if (!c || !bio)
		return;
	end = roles & EB_HAS_CACHE ? sender_end_io(bio) : 0;
	flow = flow_of(c, dir, class_of(bio, end, roles));
	flow->bytes += nr_bytes;
	/* The last part of a request that completes in parts. */
	if (rq->__data_len <= nr_bytes) {
		flow->ios++;
		start_ns = rq->start_time_ns;
		/* 0: I/O statistics are off for this queue. */
		if (start_ns)
			count_latency(flow, now_ns - start_ns);
	}
	if (!may_copy(roles, dir) || (!is_copy(end) && bio == rq->biotail))
		return;
	copy_done(c, bio, copy_kind(roles, dir), nr_bytes);
	if (drain_is_awaited(e, roles, dir))
		destage_drained(e, now_ns);
}

/* The end of a bio at a device without requests; stamp 0: its arrival is not known. */
static __always_inline void device_bio_done(struct bio *bio, struct eb_dev *e, __u32 roles,
					    __u32 dir, __u32 bytes, __u64 stamp, __u64 now_ns)
{
	struct eb_dev_cpu *c = dev_counters(e->device_slot);
	__u64 end = roles & EB_HAS_CACHE ? (__u64)bio->bi_end_io : 0;
	struct eb_flow *flow;

	if (!c)
		return;
	/* dm-cache chains the second bio of a write-through to the first. */
	flow = flow_of(c, dir, class_of(bio, end ? sender_end_io(bio) : 0, roles));
	flow->ios++;
	flow->bytes += bytes;
	if (stamp)
		count_latency(flow, stamp_age_ns(stamp, now_ns));
	if (!may_copy(roles, dir) || !is_copy(end))
		return;
	c->copied[copy_kind(roles, dir)].ios++;
	c->copied[copy_kind(roles, dir)].bytes += bytes;
	if (drain_is_awaited(e, roles, dir))
		destage_drained(e, now_ns);
}

#endif
