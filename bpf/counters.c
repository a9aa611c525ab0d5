// SPDX-License-Identifier: GPL-2.0-only
#include "counters.h"

#include <stddef.h>
#include <string.h>

static void add(__u64 *sum, const __u64 *one, size_t bytes)
{
	for (size_t i = 0; i < bytes / sizeof(*sum); i++)
		sum[i] += __atomic_load_n(&one[i], __ATOMIC_RELAXED);
}

static const struct eb_vol_cpu *on_cpu(const struct probe *p, const struct volume *v, uint32_t cpu)
{
	return &p->cpu[cpu].volume[volume_index(p, v)];
}

void sum_volume(const struct probe *p, const struct volume *v, struct eb_vol_cpu *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (uint32_t cpu = 0; cpu < p->ncpu; cpu++)
		add((__u64 *)sum, (const __u64 *)on_cpu(p, v, cpu),
		    offsetof(struct eb_vol_cpu, reuse));
}

void sum_device(const struct probe *p, int device, struct eb_dev_cpu *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (uint32_t cpu = 0; cpu < p->ncpu; cpu++)
		add((__u64 *)sum, (const __u64 *)&p->cpu[cpu].device[device], sizeof(*sum));
}

uint64_t volume_moves(const struct probe *p, const struct volume *v)
{
	uint64_t sum = 0;

	for (uint32_t cpu = 0; cpu < p->ncpu; cpu++)
		for (int dir = 0; dir < EB_DIRS; dir++)
			sum += __atomic_load_n(&on_cpu(p, v, cpu)->started[dir], __ATOMIC_ACQUIRE) +
			       __atomic_load_n(&on_cpu(p, v, cpu)->done[dir], __ATOMIC_ACQUIRE);
	return sum;
}

void volume_in_flight(const struct probe *p, const struct volume *v, int64_t inflight[EB_DIRS])
{
	const struct eb_vol *shared = volume_shared(p, v);

	/* Ends are read before starts: a request that moves in between makes the volume look
	 * busier, never idle.
	 */
	for (int dir = 0; dir < EB_DIRS; dir++) {
		inflight[dir] = shared->unseen[dir];
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
		const char *d = (const char *)&p->cpu[cpu].device[device];

		sum += __atomic_load_n((const __u64 *)(d + offset), __ATOMIC_ACQUIRE);
	}
	return sum;
}

static uint64_t at_least_0(int64_t n)
{
	return n > 0 ? n : 0;
}

void count_destage(const struct probe *p, int device, struct destage_counts *c)
{
	/* Ends are read before starts, as above. */
	c->done_ios = on_all_cpus(p, device, offsetof(struct eb_dev_cpu, copied[EB_DESTAGE].ios));
	c->done_bytes =
		on_all_cpus(p, device, offsetof(struct eb_dev_cpu, copied[EB_DESTAGE].bytes));
	c->queued_ios = on_all_cpus(p, device, offsetof(struct eb_dev_cpu, queued_ios));
	c->queued_bytes = on_all_cpus(p, device, offsetof(struct eb_dev_cpu, queued_bytes));
}

void read_destage(const struct probe *p, int device, struct destage *d)
{
	const struct device *owner = &p->device[device];
	struct destage_counts c;

	count_destage(p, device, &c);
	d->ios = at_least_0(c.queued_ios - c.done_ios + owner->unseen_ios);
	d->bytes = at_least_0(c.queued_bytes - c.done_bytes + owner->unseen_bytes);
	d->queued_ios = c.queued_ios;
	d->done_ios = c.done_ios;
	d->done_bytes = c.done_bytes;
}
