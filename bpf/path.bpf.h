/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The path of a request at a volume of device-mapper: where dm-cache and dm-writecache sent its
 * parts, together. It is noted in the join, in place of the path. dm splits a bio at the borders of
 * cache blocks, and sends a clone of it, or of each part, to the cache or to the backing device.
 */
#ifndef EBBGATE_PATH_BPF_H
#define EBBGATE_PATH_BPF_H

#include "attribution.bpf.h"
#include "heat.bpf.h"
#include "join.bpf.h"

#define TO_CACHE 1
#define TO_BACKING 2

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

static __always_inline void volume_done(struct eb_vol_cpu *c, struct eb_dev *e, struct join *j,
					__u32 dir, __u32 left, __u64 now_ns)
{
	__u32 sent_to = j ? j->id & JOIN_PATH_MASK : 0;
	struct eb_flow *flow;

	if (!j || !sent_to) {
		if (left)
			count_unmatched(c, e->volume, dir);
		return;
	}
	flow = &c->path[bounded(path_of(dir, volume_of(e->volume)->mode, sent_to), EB_PATHS)];
	flow->ios++;
	flow->bytes += j->bytes;
	count_latency(flow, stamp_age_ns(j->start_ns, now_ns));
}

#ifdef EBBGATE_BCC
/* The kernel's headers do not show struct dm_target_io. */
#define part_sent(bio, e, roles, end) false
#else
/* The address of the bio that arrived at the volume, from the clone that the target got. */
static __always_inline __u64 original_bio(struct bio *clone)
{
	__u64 tio = bio_id(clone) - shared.dm.clone;
	__u64 io = 0, bio = 0;

	bpf_probe_read_kernel(&io, sizeof(io), (void *)(tio + shared.dm.io));
	bpf_probe_read_kernel(&bio, sizeof(bio), (void *)(io + shared.dm.original));
	return bio;
}

/*
 * The request that a bio is a part of, 0 if it is none. A whole request that is sent in the task
 * that has just submitted it is known by its pages; parts, and what a worker sends, take the longer
 * way. Without the addresses of completion functions all bios take it; from a bio that is no clone
 * of dm it leads to no request.
 */
static __always_inline __u64 request_of(struct bio *bio, __u64 end, __u32 bytes)
{
	struct submitter *s;
	__u64 task;

	if (end != shared.endio[EB_END_DM_CLONE] && end != shared.endio[EB_END_OVERWRITE])
		return shared.endio[EB_END_DM_CLONE] == EB_NO_ENDIO ? original_bio(bio) : 0;
	task = this_task();
	s = submitter_of(task);
	if (s->task != task || s->pages != (__u64)bio->bi_io_vec || s->bytes != bytes)
		return original_bio(bio);
	s->task = 0;
	return s->id;
}

/* In passthrough mode all reads go to the backing device: they are no misses. */
static __always_inline void part_at_backing(struct bio *bio, __u32 volume, __u32 bytes, __u32 dir)
{
	struct eb_vol *v = volume_of(volume);

	if (dir == EB_READ && v->mode == EB_MODE_PASSTHROUGH)
		return;
	count_miss(volume, bio->bi_iter.bi_sector - v->data_sector,
		   dir == EB_WRITE ? HEAT_WRITE : read_kind(bio, bytes, false), true);
	attribute_miss(bio, volume, dir, false);
}

/* A device can be the cache of one volume and back another one. */
static __always_inline bool is_backing_of(struct eb_dev *e, __u32 roles, __u32 volume)
{
	return roles & EB_IS_BACKING && (!(roles & EB_IS_CACHE) || e->backs == volume);
}

/* A bio is sent to a device of a volume of dm; returns whether it is a part of a request. */
static __always_inline bool part_sent(struct bio *bio, struct eb_dev *e, __u32 roles, __u64 end)
{
	__u32 bytes = bio->bi_iter.bi_size, opf = bio->bi_opf, volume;
	struct join *j;
	__u64 id;

	if ((opf & EB_OP_MASK) > REQ_OP_WRITE || !bytes)
		return false;
	id = request_of(bio, end, bytes);
	j = id ? join_find(&joins, id) : NULL;
	if (!j || !j->volume)
		return false;
	volume = j->volume - 1;
	/* Workers send parts that had to wait, at the same time as others are sent. */
	if (!is_backing_of(e, roles, volume)) {
		__sync_fetch_and_or(&j->id, TO_CACHE);
		return true;
	}
	__sync_fetch_and_or(&j->id, TO_BACKING);
	part_at_backing(bio, volume, bytes, opf & 1);
	return true;
}
#endif

#endif
