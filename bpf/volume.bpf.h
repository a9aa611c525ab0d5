/* SPDX-License-Identifier: GPL-2.0-only */
/* Users' requests that arrive at a volume: counts, kinds, streams. */
#ifndef EBBGATE_VOLUME_BPF_H
#define EBBGATE_VOLUME_BPF_H

#include "edges.bpf.h"
#include "stream.h"

#ifndef EBBGATE_BCC
struct stream_table streams[EB_VOLUMES][EB_DIRS];
#endif

/* What few requests have. Returns whether the request is a discard, which counts nowhere else. */
static __always_inline bool arrive_rare(struct eb_vol_cpu *c, struct eb_arrivals *a, __u32 roles,
					__u32 opf)
{
	if (is_discard(opf & EB_OP_MASK)) {
		c->discard++;
		/* bcache tells its end. */
		if (!(roles & EB_IS_DISK))
			c->started[EB_WRITE]++;
		return true;
	}
	if (opf & flags.meta)
		a->meta++;
	if (opf & flags.ahead)
		a->ahead++;
	if (opf & flags.preflush)
		c->flush++;
	return false;
}

static __always_inline void arrive(struct bio *bio, struct eb_cpu *cpu, struct eb_dev *e,
				   __u32 roles, struct arrival new, bool atomics)
{
	struct eb_vol_cpu *c = vol_counters(cpu, e->volume);
	struct eb_vol *v = volume_of(e->volume);
	__u32 dir = new.opf & 1, run;
	struct eb_arrivals *a = &c->arrivals[dir];
	__u64 sector;

	OPAQUE(a);
	/* bcache_request_start, in the same task, needs the time too. */
	if (!BIO_STAMPED && !(roles & EB_IS_DISK)) {
		c->arrived_id = bio_id(bio);
		c->arrived_ns = new.stamp;
	}
	if (UNLIKELY(idle_stale(v->last_ns, new.stamp)))
		leave_idle(e, v, c, new.stamp, atomics);
	if (UNLIKELY(new.opf &flags.rare) && arrive_rare(c, a, roles, new.opf))
		return;
	/*
	 * On a disk bytes are counted, because requests are split and merged; elsewhere requests.
	 * Their ends are counted by block.bpf.c, those of bcache by bcache.bpf.c.
	 */
	if (!(roles & EB_IS_DISK))
		c->started[dir]++;
	else
		c->started[dir] += roles & EB_IS_BIO ? !is_part(bio) : new.bytes;
	if (UNLIKELY(!new.bytes))
		return;
	if (new.opf & flags.sync)
		a->sync++;
	a->ios++;
	sector = bio->bi_iter.bi_sector;
	run = stream_advance(&streams[e->volume & (EB_VOLUMES - 1)][dir], sector, new.bytes >> 9,
			     stream_tick(new.stamp), &c->lost_streams);
	reuse_request(&c->reuse, sector, new.bytes >> 9, dir, new.stamp, &c->lost_reuse);
	a->runs[bounded(stream_run_bucket(run), HIST_LOG2_BUCKETS)] += new.bytes;
}

#endif
