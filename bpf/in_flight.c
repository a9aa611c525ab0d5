// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests in flight are starts minus ends. The difference goes wrong when a start was not seen
 * (the request began before the volume was tracked) or an end was not (the kernel skipped a
 * program). So the count begins with the kernel's own, a negative difference is set to 0, and so
 * is a positive one when nothing moves and the kernel counts 0. Destage in flight is corrected the
 * same way but begins with 0, because the kernel does not tell which requests are destage.
 */
#include "in_flight.h"

#include "clock.h"
#include "counters.h"
#include "sysfs.h"

/* The kernel does not count requests that wait in the scheduler, but none waits longer. */
#define STILL_NS NS_PER_S

void init_in_flight(struct probe *p, struct volume *v)
{
	struct eb_vol *shared = volume_shared(p, v);
	uint64_t kernel[EB_DIRS];

	/* On a plain disk bytes are counted, which the kernel does not report. */
	if (v->kind == KIND_DISK || !block_in_flight(v->dev, kernel))
		return;
	shared->unseen[EB_READ] = kernel[EB_READ];
	shared->unseen[EB_WRITE] = kernel[EB_WRITE];
}

static bool kernel_counts_none(uint32_t dev)
{
	uint64_t kernel[EB_DIRS];

	return block_in_flight(dev, kernel) && !kernel[EB_READ] && !kernel[EB_WRITE];
}

static bool volume_moved(struct volume *v, const struct eb_vol_cpu *sum)
{
	uint64_t started = sum->started[EB_READ] + sum->started[EB_WRITE];
	uint64_t done = sum->done[EB_READ] + sum->done[EB_WRITE];
	bool moved = started != v->last_started || done != v->last_done;

	v->last_started = started;
	v->last_done = done;
	return moved;
}

void correct_in_flight(struct probe *p, struct volume *v, const struct eb_vol_cpu *sum)
{
	struct eb_vol *shared = volume_shared(p, v);
	bool moved = volume_moved(v, sum), still;
	int64_t inflight[EB_DIRS];

	volume_in_flight(p, v, inflight);
	still = !moved && (inflight[EB_READ] > 0 || inflight[EB_WRITE] > 0) &&
		kernel_counts_none(v->dev);
	for (int dir = 0; dir < EB_DIRS; dir++)
		if (inflight[dir] < 0 || still)
			shared->unseen[dir] -= inflight[dir];
}

static bool device_is_still(struct device *d, const struct destage_counts *c, uint64_t now)
{
	uint64_t queued_ios = c->queued_ios, done_ios = c->done_ios;

	if (d->last_queued_ios != queued_ios || d->last_done_ios != done_ios) {
		d->last_queued_ios = queued_ios;
		d->last_done_ios = done_ios;
		d->moved_ns = now;
	}
	return now - d->moved_ns >= STILL_NS && kernel_counts_none(d->dev);
}

static void correct_device(struct probe *p, int device, uint64_t now)
{
	struct device *d = &p->device[device];
	struct destage_counts c;
	int64_t ios, bytes;
	bool still;

	count_destage(p, device, &c);
	ios = c.queued_ios - c.done_ios + d->unseen_ios;
	bytes = c.queued_bytes - c.done_bytes + d->unseen_bytes;
	still = (ios > 0 || bytes > 0) && device_is_still(d, &c, now);
	if (ios < 0 || still)
		d->unseen_ios -= ios;
	if (bytes < 0 || still)
		d->unseen_bytes -= bytes;
}

void correct_destage(struct probe *p, struct volume *v, uint64_t now)
{
	for (size_t i = 0; i < v->caches; i++)
		correct_device(p, v->cache[i], now);
	if (v->backing < 0)
		return;
	correct_device(p, v->backing, now);
	__atomic_store_n(&volume_shared(p, v)->destage_unseen, p->device[v->backing].unseen_ios,
			 __ATOMIC_RELAXED);
}
