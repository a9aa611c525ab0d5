// SPDX-License-Identifier: GPL-2.0-only
/* Sums over CPUs of what the programs count. */
#include "probe.h"

#include <string.h>

static void add(__u64 *sum, const __u64 *one, size_t bytes)
{
	for (size_t i = 0; i < bytes / sizeof(*sum); i++)
		sum[i] += __atomic_load_n(&one[i], __ATOMIC_RELAXED);
}

static const struct eb_vol_cpu *on_cpu(const struct probe *p, const struct volume *v, uint32_t cpu)
{
	return &p->vol_cpu[volume_index(p, v) * p->ncpu + cpu];
}

void sum_volume(const struct probe *p, const struct volume *v, struct eb_vol_cpu *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (uint32_t cpu = 0; cpu < p->ncpu; cpu++)
		add((__u64 *)sum, (const __u64 *)on_cpu(p, v, cpu), sizeof(*sum));
}

void sum_device(const struct probe *p, int device, struct eb_dev_cpu *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (uint32_t cpu = 0; cpu < p->ncpu; cpu++)
		add((__u64 *)sum, (const __u64 *)&p->dev_cpu[device * p->ncpu + cpu], sizeof(*sum));
}

void volume_in_flight(const struct probe *p, const struct volume *v, int64_t inflight[EB_DIRS])
{
	const struct eb_vol *shared = volume_shared(p, v);

	/* Ends before starts: what moves meanwhile makes the volume look busier, never idle. */
	for (int dir = 0; dir < EB_DIRS; dir++) {
		inflight[dir] = shared->owed[dir];
		for (uint32_t cpu = 0; cpu < p->ncpu; cpu++)
			inflight[dir] -=
				__atomic_load_n(&on_cpu(p, v, cpu)->done[dir], __ATOMIC_ACQUIRE);
		for (uint32_t cpu = 0; cpu < p->ncpu; cpu++)
			inflight[dir] +=
				__atomic_load_n(&on_cpu(p, v, cpu)->started[dir], __ATOMIC_ACQUIRE);
	}
}

void destage_in_flight(const struct probe *p, int device, struct eb_dev_cpu *sum)
{
	memset(sum, 0, offsetof(struct eb_dev_cpu, flow));
	/* Ends before starts, as above: the fields are in the other order. */
	for (uint32_t cpu = 0; cpu < p->ncpu; cpu++)
		add((__u64 *)&sum->copied[EB_DESTAGE],
		    (const __u64 *)&p->dev_cpu[device * p->ncpu + cpu].copied[EB_DESTAGE],
		    sizeof(struct eb_copied));
	for (uint32_t cpu = 0; cpu < p->ncpu; cpu++)
		add(&sum->queued_ios, (const __u64 *)&p->dev_cpu[device * p->ncpu + cpu].queued_ios,
		    16);
}
