/* SPDX-License-Identifier: GPL-2.0-only */
/* Foreground as it arrives at a volume: arrivals, streams, idle gaps, the busy edge. */
#ifndef EBBGATE_VOLUME_BPF_H
#define EBBGATE_VOLUME_BPF_H

#include "maps.bpf.h"
#include "stream.h"

struct stream_table streams[EB_VOLUMES][EB_DIRS];

static __always_inline __u64 arrival_ns(struct bio *bio)
{
	if (bio_stamped)
		return stamp_full_ns(bio_stamp(bio), shared.clock_ns);
	return bpf_ktime_get_ns();
}

/* Requests in flight, over all CPUs. Only called at a possible gap. */
static __always_inline __u64 in_flight(__u32 volume)
{
	struct eb_vol *v = volume_of(volume);
	__s64 n = v->owed[EB_READ] + v->owed[EB_WRITE];

	for (__u32 cpu = 0; cpu < ncpu && cpu < EB_CPUS_MAX; cpu++) {
		__u32 key = volume * ncpu + cpu;
		struct eb_vol_cpu *c = bpf_map_lookup_elem(&vol_cpu, &key);

		if (!c)
			break;
		n += c->started[EB_READ] - c->done[EB_READ];
		n += c->started[EB_WRITE] - c->done[EB_WRITE];
	}
	return n > 0 ? n : 0;
}

/* The shared line is stale: end of a gap, perhaps of an idle period. */
static __always_inline void end_gap(struct eb_vol_cpu *c, __u32 volume, __u64 now_ns)
{
	struct eb_vol *v = volume_of(volume);
	__u64 last_ns = v->last_ns, gap_ns;
	__u32 bucket;

	/* Of CPUs that arrive together, one counts the gap. */
	if (__sync_val_compare_and_swap(&v->last_ns, last_ns, now_ns) != last_ns)
		return;
	if (!idle_gap_ns(last_ns, now_ns, 0))
		return;
	gap_ns = idle_gap_ns(last_ns, now_ns, in_flight(volume));
	if (!gap_ns)
		return;
	bucket = bounded(idle_gap_bucket(gap_ns), HIST_LOG2_BUCKETS);
	c->gaps[bucket]++;
	c->gaps_ns[bucket] += gap_ns;
}

static __always_inline void arrive_flags(struct eb_vol_cpu *c, __u32 opf, __u32 dir)
{
	if (opf & FLAG(__REQ_SYNC))
		c->sync[dir]++;
	if (opf & FLAG(__REQ_META))
		c->meta[dir]++;
	if (opf & FLAG(__REQ_RAHEAD))
		c->ahead++;
}

static __always_inline void arrive_data(struct eb_vol_cpu *c, struct bio *bio, __u32 volume,
					__u32 opf, __u32 bytes, __u64 now_ns)
{
	__u32 dir = opf & 1;
	__u32 run = stream_advance(&streams[volume & (EB_VOLUMES - 1)][dir], bio->bi_iter.bi_sector,
				   bytes >> 9, now_ns >> STREAM_TICK_SHIFT, &c->lost_streams);

	c->ios[dir]++;
	c->runs[dir][bounded(stream_run_bucket(run), HIST_LOG2_BUCKETS)] += bytes;
	if (opf & (FLAG(__REQ_SYNC) | FLAG(__REQ_META) | FLAG(__REQ_RAHEAD)))
		arrive_flags(c, opf, dir);
}

static __always_inline void arrive(struct bio *bio, struct eb_dev *e)
{
	__u32 volume = e->volume, opf = bio->bi_opf, bytes = bio->bi_iter.bi_size;
	struct eb_vol_cpu *c = vol_counters(volume);
	struct eb_vol *v = volume_of(volume);
	__u64 now_ns = arrival_ns(bio), last_ns = v->last_ns;

	if (!c)
		return;
	if (v->armed && __sync_lock_test_and_set(&v->armed, 0))
		push_edge(c, volume, EB_EDGE_BUSY, now_ns, now_ns - last_ns);
	if (idle_stale(last_ns, now_ns))
		end_gap(c, volume, now_ns);
	if (is_discard(opf & OP_MASK)) {
		c->discard++;
		return;
	}
	if (opf & FLAG(__REQ_PREFLUSH))
		c->flush++;
	if (!bytes)
		return;
	arrive_data(c, bio, volume, opf, bytes, now_ns);
	if (e->roles & EB_IS_DISK)
		c->started[opf & 1] += bytes;
}

#endif
