/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a volume of device-mapper sends the parts of a request: dm splits a bio at the borders of
 * cache blocks. Arrivals and ends are counted in block.bpf.c, which has the same `.bss`.
 */
#include "volume.bpf.h"
#include "device.bpf.h"
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

static __always_inline void bio_remap(struct bio *bio, __u32 volume)
{
	struct eb_dev *e = find_dev(volume), *to;
	struct join *j;
	__u64 id;

	if (!e || !(e->roles & EB_IS_DM) || !(e->roles & EB_IS_VOLUME))
		return;
	if ((bio->bi_opf & OP_MASK) > REQ_OP_WRITE || !bio->bi_iter.bi_size)
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

PROGRAM(dm_bio_remap, "block_bio_remap", bio_remap(bio, volume), struct bio *bio, __u32 volume)

char LICENSE[] SEC("license") = "GPL";
