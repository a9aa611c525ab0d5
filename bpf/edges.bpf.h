/* SPDX-License-Identifier: GPL-2.0-only */
/* Edges, which are pushed at once: an idle period ends, a destage queue runs empty. */
#ifndef EBBGATE_EDGES_BPF_H
#define EBBGATE_EDGES_BPF_H

#include "maps.bpf.h"

#ifndef EBBGATE_BCC
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, EB_EDGE_RING_BYTES);
} edges SEC(".maps");
#endif

static __always_inline void push_edge(struct eb_vol_cpu *c, __u32 volume, __u32 kind, __u64 ns,
				      __u64 gap_ns)
{
	struct eb_edge edge = { .ns = ns, .gap_ns = gap_ns, .volume = volume, .kind = kind };

	if (bpf_ringbuf_output(&edges, &edge, sizeof(edge), 0))
		c->lost_ring++;
}

/* Requests in flight, over all CPUs. Called only at a possible gap. */
static __always_inline __u64 in_flight(struct eb_vol *v, __u32 volume)
{
	__s64 reads = v->unseen[EB_READ], writes = v->unseen[EB_WRITE];

	for (__u32 i = 0; i < ncpu && i < EB_CPUS_MAX; i++) {
		struct eb_cpu *cpu = counters_of(i);
		struct eb_vol_cpu *c;

		if (!cpu)
			break;
		c = vol_counters(cpu, volume);
		reads += c->started[EB_READ] - c->done[EB_READ];
		writes += c->started[EB_WRITE] - c->done[EB_WRITE];
	}
	/* Ends whose starts were not seen must not hide requests of the other direction. */
	return (reads > 0 ? reads : 0) + (writes > 0 ? writes : 0);
}

static __always_inline void count_gap(struct eb_vol_cpu *c, __u64 gap_ns)
{
	__u32 bucket = bounded(idle_gap_bucket(gap_ns), HIST_LOG2_BUCKETS);

	c->gaps[bucket]++;
	c->gaps_ns[bucket] += gap_ns;
}

/* Sets the last activity; false if another arrival did so first. */
static __always_inline bool take_gap(struct eb_vol *v, __u64 last_ns, __u64 now_ns, bool atomics)
{
	if (atomics)
		return __sync_val_compare_and_swap(&v->last_ns, last_ns, now_ns) == last_ns;
	if (v->last_ns != last_ns)
		return false;
	v->last_ns = now_ns;
	return true;
}

static __always_inline bool take_armed(struct eb_vol *v, bool atomics)
{
	if (atomics)
		return __sync_lock_test_and_set(&v->armed, 0);
	v->armed = 0;
	return true;
}

/*
 * Handles an arrival that finds the last activity stale. If requests arrive on several CPUs at the
 * same time, one of them takes the gap, and one the flag of an idle volume. Without atomic
 * instructions (in v5.12) two may, at worst: then a gap counts twice, and the loader ignores the
 * second edge.
 */
static __always_inline void leave_idle(struct eb_dev *e, struct eb_vol *v, struct eb_vol_cpu *c,
				       __u64 stamp, bool atomics)
{
	__u64 last_ns = v->last_ns, gap_ns = 0;
	__u64 now_ns = stamp_full_ns(stamp, shared.clock_ns);

	if (take_gap(v, last_ns, now_ns, atomics) && idle_gap_ns(last_ns, now_ns, 0))
		gap_ns = idle_gap_ns(last_ns, now_ns, in_flight(v, e->volume));
	if (gap_ns)
		count_gap(c, gap_ns);
	if (v->armed && take_armed(v, atomics))
		push_edge(c, e->volume, EB_EDGE_BUSY, now_ns,
			  now_ns > last_ns ? now_ns - last_ns : 0);
}

#endif
