/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The path of a request at a volume of device-mapper: where dm-cache and dm-writecache sent its
 * parts, together. dm.bpf.c notes it in the join, in place of the path.
 */
#ifndef EBBGATE_PATH_BPF_H
#define EBBGATE_PATH_BPF_H

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
		c->lost_unmatched += !!left;
		return;
	}
	flow = &c->path[bounded(path_of(dir, e->mode, sent_to), EB_PATHS)];
	flow->ios++;
	flow->bytes += j->bytes;
	count_latency(flow, stamp_age_ns(j->start_ns, now_ns));
}

#endif
