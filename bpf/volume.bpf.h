/* SPDX-License-Identifier: GPL-2.0-only */
/* Users' requests that arrive at a volume: counts, kinds, streams. */
#ifndef EBBGATE_VOLUME_BPF_H
#define EBBGATE_VOLUME_BPF_H

#include "edges.bpf.h"
#include "stream.h"

#ifndef EBBGATE_BCC
struct stream_table streams[EB_VOLUMES][EB_DIRS];
#endif

/* Flags that few requests carry. */
static __always_inline void arrive_rare(struct eb_vol_cpu *c, struct eb_arrivals *a, __u32 opf)
{
	if (opf & flags.meta)
		a->meta++;
	if (opf & flags.ahead)
		a->ahead++;
	if (opf & flags.preflush)
		c->flush++;
}

static __always_inline void arrive(struct bio *bio, struct eb_dev *e, __u32 roles, __u64 stamp,
				   bool atomics)
{
	struct eb_vol_cpu *c = vol_counters(e->volume_slot);
	struct eb_vol *v = volume_of(e->volume);
	__u32 opf = bio->bi_opf, bytes = bio->bi_iter.bi_size, dir = opf & 1, run;
	struct eb_arrivals *a;
	__u64 sector;

	if (!c)
		return;
	/* bcache_request_start, in the same task, needs the time too. */
	if (!BIO_STAMPED && !(roles & EB_IS_DISK)) {
		c->arrived_id = bio_id(bio);
		c->arrived_ns = stamp;
	}
	if (idle_stale(v->last_ns, stamp))
		leave_idle(e, v, c, stamp, atomics);
	a = &c->arrivals[dir];
	if ((opf & OP_MASK) > REQ_OP_WRITE && is_discard(opf & OP_MASK)) {
		c->discard++;
		return;
	}
	if (opf & flags.rare)
		arrive_rare(c, a, opf);
	/*
	 * On a disk bytes are counted, because requests are split and merged; on a device without
	 * requests bios. block.bpf.c counts their ends.
	 */
	if (roles & EB_IS_DISK)
		c->started[dir] += roles & EB_IS_BIO ? !is_part(bio) : bytes;
	if (!bytes)
		return;
	if (opf & flags.sync)
		a->sync++;
	sector = bio->bi_iter.bi_sector;
	run = stream_advance(&streams[e->volume & (EB_VOLUMES - 1)][dir], sector, bytes >> 9,
			     stream_tick(stamp), &c->lost_streams);
	reuse_request(&c->reuse, sector, bytes >> 9, dir, stamp, &c->lost_reuse);
	a->ios++;
	a->runs[bounded(stream_run_bucket(run), HIST_LOG2_BUCKETS)] += bytes;
}

#endif
