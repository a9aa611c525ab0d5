/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Volumes of device-mapper: the path of each request, from the devices to which dm-cache and
 * dm-writecache send its parts, and the bios of devices below that have no requests. dm splits a
 * bio at the borders of cache blocks and queues the rest again with a new stamp. So the size and
 * the start are kept from its arrival, and the path is that of all parts together.
 */
#include "device.bpf.h"

/* Kept in the join in place of the path: where parts of the request went. */
#define TO_CACHE 1
#define TO_BACKING 2

/* The address of a bio as a number: the verifier refuses the address but not its negation. */
static __always_inline __u64 address_of(struct bio *bio)
{
	__u64 address = (__u64)bio;

	asm volatile("%0 = -%0" : "+r"(address));
	return -address;
}

/* The address of the bio that arrived at the volume, from the clone that the target got. */
static __always_inline __u64 original_bio(struct bio *clone)
{
	__u64 tio = address_of(clone) - bpf_core_field_offset(struct dm_target_io, clone);
	__u64 io = 0, bio = 0;

	bpf_probe_read_kernel(&io, sizeof(io),
			      (void *)tio + bpf_core_field_offset(struct dm_target_io, io));
	bpf_probe_read_kernel(&bio, sizeof(bio),
			      (void *)io + bpf_core_field_offset(struct dm_io, orig_bio));
	return bio;
}

/* The entry of a device that this file handles; NULL also for a bio without data. */
static __always_inline struct eb_dev *dm_entry(__u32 dev, struct bio *bio)
{
	struct eb_dev *e = find_dev(dev);

	return e && (e->roles & EB_IS_DM) && (bio->bi_opf & OP_MASK) <= REQ_OP_WRITE ? e : NULL;
}

static __always_inline void bio_queue(struct bio *bio)
{
	struct eb_dev *e = dm_entry(bio_dev(bio), bio);
	__u32 bytes = bio->bi_iter.bi_size;
	struct eb_vol_cpu *c;
	struct join *j;
	__u64 id;

	if (!e || !bytes)
		return;
	c = vol_counters(e->roles & EB_IS_VOLUME ? e->volume_slot : e->backs_slot);
	if (!c)
		return;
	id = address_of(bio);
	j = join_of(c, id);
	j->id = id;
	j->start_ns = arrival_stamp(bio);
	j->bytes = bytes;
}

static __always_inline void bio_remap(struct bio *bio, __u32 volume)
{
	struct eb_dev *e = dm_entry(volume, bio), *to;
	struct join *j;
	__u64 id;

	if (!e || !(e->roles & EB_IS_VOLUME) || !bio->bi_iter.bi_size)
		return;
	to = find_dev(bio_dev(bio));
	if (!to || !(to->roles & (EB_IS_BACKING | EB_IS_CACHE)))
		return;
	id = original_bio(bio);
	j = id ? join_find(&joins, id) : NULL;
	/* Workers send parts that had to wait, at the same time as others are sent. */
	if (j)
		__sync_fetch_and_or(&j->id, to->roles & EB_IS_BACKING ? TO_BACKING : TO_CACHE);
}

/* A part at the backing device makes the whole request a miss, as in bcache. */
static __always_inline __u32 path_of(__u32 dir, __u32 mode, __u32 sent_to)
{
	if (dir == EB_READ)
		return sent_to == TO_CACHE	     ? EB_READ_HIT
		       : mode == EB_MODE_PASSTHROUGH ? EB_READ_BYPASS
						     : EB_READ_MISS;
	return sent_to != TO_CACHE	      ? EB_WRITE_BYPASS
	       : mode == EB_MODE_WRITETHROUGH ? EB_WRITE_THROUGH
					      : EB_WRITE_BACK;
}

static __always_inline void volume_done(struct eb_dev *e, struct join *j, __u32 dir, __u32 left,
					__u64 now_ns)
{
	struct eb_vol_cpu *c = vol_counters(e->volume_slot);
	struct eb_flow *flow;
	__u32 sent_to;

	if (!c)
		return;
	sent_to = j ? j->id & JOIN_PATH_MASK : 0;
	if (!j || !sent_to) {
		c->lost_unmatched += !!left;
		return;
	}
	flow = &c->path[bounded(path_of(dir, e->mode, sent_to), EB_PATHS)];
	flow->ios++;
	flow->bytes += j->bytes;
	count_latency(flow, stamp_age_ns(j->start_ns, now_ns));
}

static __always_inline void bio_complete(struct bio *bio)
{
	struct eb_dev *e = dm_entry(bio_dev(bio), bio);
	__u32 dir = bio->bi_opf & 1, bytes = bio->bi_iter.bi_size;
	struct join *j;
	__u64 now_ns;

	if (!e)
		return;
	j = join_find(&joins, address_of(bio));
	now_ns = bpf_ktime_get_ns();
	if (e->roles & EB_IS_VOLUME)
		volume_done(e, j, dir, bytes, now_ns);
	/* Without a join it was in flight before tracking began, or bcache sent it elsewhere. */
	if ((e->roles & (EB_IS_BACKING | EB_IS_CACHE)) && (j || is_copy((__u64)bio->bi_end_io)))
		device_bio_done(bio, e, e->roles, dir, j ? j->bytes : bytes, j ? j->start_ns : 0,
				now_ns);
	if (j)
		j->id = 0;
}

PROGRAM(dm_bio_queue, "block_bio_queue", bio_queue(bio), struct bio *bio)
PROGRAM(dm_bio_remap, "block_bio_remap", bio_remap(bio, volume), struct bio *bio, __u32 volume)
PROGRAM(dm_bio_complete, "block_bio_complete", bio_complete(bio), struct request_queue *q,
	struct bio *bio)

char LICENSE[] SEC("license") = "GPL";
