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

static int64_t on_all_cpus(const struct probe *p, int device, size_t offset)
{
	int64_t sum = 0;

	for (uint32_t cpu = 0; cpu < p->ncpu; cpu++) {
		const char *d = (const char *)&p->dev_cpu[device * p->ncpu + cpu];

		sum += __atomic_load_n((const __u64 *)(d + offset), __ATOMIC_ACQUIRE);
	}
	return sum;
}

static uint64_t not_below_0(int64_t n)
{
	return n > 0 ? n : 0;
}

/* Without resync.c's correction: below 0 only when a start was never seen. */
void count_destage(const struct probe *p, int device, struct counted *c)
{
	/* Ends before starts, as above. */
	c->done_ios = on_all_cpus(p, device, offsetof(struct eb_dev_cpu, copied[EB_DESTAGE].ios));
	c->done_bytes =
		on_all_cpus(p, device, offsetof(struct eb_dev_cpu, copied[EB_DESTAGE].bytes));
	c->queued_ios = on_all_cpus(p, device, offsetof(struct eb_dev_cpu, queued_ios));
	c->queued_bytes = on_all_cpus(p, device, offsetof(struct eb_dev_cpu, queued_bytes));
}

void destage_in_flight(const struct probe *p, int device, struct destage *d)
{
	const struct device *of = &p->device[device];
	struct counted c;

	count_destage(p, device, &c);
	d->ios = not_below_0(c.queued_ios - c.done_ios + of->unseen_ios);
	d->bytes = not_below_0(c.queued_bytes - c.done_bytes + of->unseen_bytes);
	d->queued_ios = c.queued_ios;
	d->done_ios = c.done_ios;
	d->done_bytes = c.done_bytes;
}
