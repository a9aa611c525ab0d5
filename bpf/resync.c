// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests in flight are starts minus ends. A request that began before the volume was
 * tracked ends without a start; one whose end the kernel skipped never ends. So: begin with
 * what the kernel counts; a negative number is a debt; and so is a positive one when nothing
 * moves and the kernel counts none. The same holds for destage in flight, but that begins with
 * 0: the kernel does not tell which of its requests are destage.
 */
#include "probe.h"

#include <string.h>

static bool moved(struct volume *v, const struct eb_vol_cpu *c)
{
	uint64_t started = c->started[EB_READ] + c->started[EB_WRITE];
	uint64_t done = c->done[EB_READ] + c->done[EB_WRITE];
	bool moved = started != v->stuck_started || done != v->stuck_done;

	v->stuck_started = started;
	v->stuck_done = done;
	return moved;
}

void resync(struct probe *p, struct volume *v, const struct eb_vol_cpu *c)
{
	struct eb_vol *shared = volume_shared(p, v);
	uint64_t kernel[EB_DIRS];
	int64_t ours[EB_DIRS];
	bool still = !moved(v, c);

	volume_in_flight(p, v, ours);
	for (int dir = 0; dir < EB_DIRS; dir++)
		if (ours[dir] < 0)
			shared->owed[dir] -= ours[dir];
	if (!still || (ours[EB_READ] <= 0 && ours[EB_WRITE] <= 0))
		return;
	if (!block_in_flight(v->dev, kernel) || kernel[EB_READ] || kernel[EB_WRITE])
		return;
	for (int dir = 0; dir < EB_DIRS; dir++)
		if (ours[dir] > 0)
			shared->owed[dir] -= ours[dir];
}

void start_in_flight(struct probe *p, struct volume *v)
{
	struct eb_vol *shared = volume_shared(p, v);
	uint64_t kernel[EB_DIRS];

	/* A plain disk is followed in bytes, which the kernel does not tell. */
	if (v->kind == KIND_DISK || !block_in_flight(v->dev, kernel))
		return;
	shared->owed[EB_READ] = kernel[EB_READ];
	shared->owed[EB_WRITE] = kernel[EB_WRITE];
}

/* Requests may wait in the scheduler, where the kernel does not count them, but not for so long. */
#define STILL_NS NS_PER_S

static bool is_still(struct device *d, const struct counted *c, uint64_t now)
{
	uint64_t kernel[EB_DIRS];
	uint64_t queued_ios = c->queued_ios, done_ios = c->done_ios;

	if (d->last_queued_ios != queued_ios || d->last_done_ios != done_ios) {
		d->last_queued_ios = queued_ios;
		d->last_done_ios = done_ios;
		d->moved_ns = now;
	}
	return now - d->moved_ns >= STILL_NS && block_in_flight(d->dev, kernel) &&
	       !kernel[EB_READ] && !kernel[EB_WRITE];
}

static void resync_device(struct probe *p, int device, uint64_t now)
{
	struct device *d = &p->device[device];
	int64_t ios, bytes;
	struct counted c;
	bool still;

	count_destage(p, device, &c);
	ios = c.queued_ios - c.done_ios + d->unseen_ios;
	bytes = c.queued_bytes - c.done_bytes + d->unseen_bytes;
	still = (ios > 0 || bytes > 0) && is_still(d, &c, now);
	if (ios < 0 || still)
		d->unseen_ios -= ios;
	if (bytes < 0 || still)
		d->unseen_bytes -= bytes;
}

void resync_destage(struct probe *p, struct volume *v, uint64_t now)
{
	for (size_t i = 0; i < v->caches; i++)
		resync_device(p, v->cache[i], now);
	if (v->backing < 0)
		return;
	resync_device(p, v->backing, now);
	__atomic_store_n(&volume_shared(p, v)->destage_unseen, p->device[v->backing].unseen_ios,
			 __ATOMIC_RELAXED);
}
