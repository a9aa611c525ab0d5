/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a volume of device-mapper sends the parts of a request: dm splits a bio at the borders of
 * cache blocks. Arrivals and ends are counted in block.bpf.c, which has the same `.bss`.
 */
#include "volume.bpf.h"
#include "device.bpf.h"
#include "attribution.bpf.h"
#include "heat.bpf.h"
#include "path.bpf.h"

/* The address of the bio that arrived at the volume, from the clone that the target got. */
static __always_inline __u64 original_bio(struct bio *clone)
{
	__u64 tio = bio_id(clone) - bpf_core_field_offset(struct dm_target_io, clone);
	__u64 io = 0, bio = 0;

	bpf_probe_read_kernel(&io, sizeof(io),
			      (void *)tio + bpf_core_field_offset(struct dm_target_io, io));
	bpf_probe_read_kernel(&bio, sizeof(bio),
			      (void *)io + bpf_core_field_offset(struct dm_io, orig_bio));
	return bio;
}

/*
 * The request that a clone belongs to. A whole request that is sent in the task that has just
 * submitted it is known by its place; parts, and what a worker sends, take the longer way.
 */
static __always_inline __u64 request_of(struct bio *clone, __u64 sector, __u32 bytes)
{
	__u64 task = this_task();
	struct submitter *s = submitter_of(task);

	if (s->task != task || s->sector != sector || s->bytes != bytes)
		return original_bio(clone);
	s->task = 0;
	return s->id;
}

/* A part goes to the backing device. In passthrough mode all reads do. */
static __always_inline void part_at_backing(struct bio *bio, struct eb_dev *e, __u64 sector,
					    __u32 bytes, __u32 dir)
{
	if (dir == EB_READ && e->mode == EB_MODE_PASSTHROUGH)
		return;
	count_miss(e->volume, sector, dir == EB_WRITE ? HEAT_WRITE : read_kind(bio, bytes, false),
		   true);
	attribute_miss(bio, e->volume, dir, false);
}

static __always_inline void bio_remap(struct bio *bio, __u32 volume, __u64 sector)
{
	struct eb_dev *e = find_dev(volume), *to;
	struct join *j;
	__u32 bytes, opf;
	__u64 id;

	if (!e || !(e->roles & EB_IS_DM) || !(e->roles & EB_IS_VOLUME))
		return;
	bytes = bio->bi_iter.bi_size;
	opf = bio->bi_opf;
	if ((opf & EB_OP_MASK) > REQ_OP_WRITE || !bytes)
		return;
	to = find_dev(bio_dev(bio));
	if (!to || !(to->roles & (EB_IS_BACKING | EB_IS_CACHE)))
		return;
	id = request_of(bio, sector, bytes);
	j = id ? join_find(&joins, id) : NULL;
	if (!j)
		return;
	/* Workers send parts that had to wait, at the same time as others are sent. */
	if (!(to->roles & EB_IS_BACKING)) {
		__sync_fetch_and_or(&j->id, TO_CACHE);
		return;
	}
	__sync_fetch_and_or(&j->id, TO_BACKING);
	part_at_backing(bio, e, sector, bytes, opf & 1);
}

PROGRAM(dm_bio_remap, "block_bio_remap", bio_remap(bio, volume, sector), struct bio *bio,
	__u32 volume, __u64 sector)

char LICENSE[] SEC("license") = "GPL";
