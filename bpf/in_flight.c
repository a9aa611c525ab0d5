// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests in flight are starts minus ends. The difference goes wrong when a start was not seen
 * (the request began before the volume was tracked) or an end was not (the kernel skipped a
 * program). So the count begins with the kernel's own, a negative difference is set to 0, and so
 * is a positive one when nothing moves and the kernel counts 0. Destage in flight is corrected the
 * same way but begins with 0, because the kernel does not tell which requests are destage. After a
 * skipped program (`resync`) the count is not awaited to stand still for long.
 *
 * The ends of requests that began before are no losses (`eb_vol.earlier`): as many of each
 * direction as the kernel counts right after the programs see the volume, and any until then.
 */
#include "in_flight.h"

#include "clock.h"
#include "counters.h"
#include "sysfs.h"

/* The kernel does not count requests that wait in the scheduler, but none waits longer. */
#define STILL_NS NS_PER_S
#define RESYNC_STILL_NS (100 * NS_PER_MS)
/* Where the kernel does not count (queue/iostats is 0): drivers end a request that takes so long.
 */
#define UNCOUNTED_STILL_NS (30 * NS_PER_S)

/*
 * The kernel's own count of requests to a volume. On a device without requests, one to a partition
 * counts there only. Partitions that are gone have none.
 */
static bool volume_in_kernel(const struct volume *v, uint64_t sum[EB_DIRS])
{
	if (!block_in_flight(v->dev, sum))
		return false;
	for (size_t i = 0; i < v->parts; i++) {
		uint64_t one[EB_DIRS];

		if (block_in_flight(v->part[i], one)) {
			sum[EB_READ] += one[EB_READ];
			sum[EB_WRITE] += one[EB_WRITE];
		} else if (block_device_exists(v->part[i])) {
			return false;
		}
	}
	return true;
}

/*
 * The programs count down meanwhile: one that does so just now may put the old number back, which
 * the end of EARLIER_NS corrects.
 */
static void set_earlier(struct probe *p, struct volume *v, int32_t reads, int32_t writes)
{
	struct eb_vol *shared = volume_shared(p, v);

	__atomic_store_n(&shared->earlier[EB_READ], reads, __ATOMIC_RELAXED);
	__atomic_store_n(&shared->earlier[EB_WRITE], writes, __ATOMIC_RELAXED);
}

void expect_earlier(struct probe *p, struct volume *v)
{
	set_earlier(p, v, INT32_MAX, INT32_MAX);
}

void init_in_flight(struct probe *p, struct volume *v)
{
	struct eb_vol *shared = volume_shared(p, v);
	uint64_t kernel[EB_DIRS] = { 0 };
	/* On a plain disk bytes are counted, which the kernel does not report. */
	bool known = v->kind != KIND_DISK && volume_in_kernel(v, kernel);

	set_earlier(p, v, known ? kernel[EB_READ] : 0, known ? kernel[EB_WRITE] : 0);
	if (!known)
		return;
	shared->unseen[EB_READ] = kernel[EB_READ];
	shared->unseen[EB_WRITE] = kernel[EB_WRITE];
}

void resync_after_misses(struct probe *p, uint64_t misses)
{
	bool grew = misses > p->misses;

	p->misses = misses;
	if (!grew)
		return;
	for_each_volume (v, p)
		v->resync = true;
	for (int i = 0; i < EB_DEVICES; i++)
		p->device[i].resync = true;
}

/* Whether none is in flight at a volume or device where nothing has moved for `still_ns`. */
static bool volume_counts_none(const struct volume *v, uint64_t still_ns)
{
	uint64_t kernel[EB_DIRS];

	if (!volume_in_kernel(v, kernel))
		return still_ns >= UNCOUNTED_STILL_NS;
	return !kernel[EB_READ] && !kernel[EB_WRITE];
}

static bool device_counts_none(uint32_t dev, uint64_t still_ns)
{
	uint64_t kernel[EB_DIRS];

	if (!block_in_flight(dev, kernel))
		return still_ns >= UNCOUNTED_STILL_NS;
	return !kernel[EB_READ] && !kernel[EB_WRITE];
}

static bool volume_moved(struct volume *v, const struct eb_vol_cpu *sum, uint64_t now)
{
	uint64_t started = sum->started[EB_READ] + sum->started[EB_WRITE];
	uint64_t done = sum->done[EB_READ] + sum->done[EB_WRITE];
	bool moved = started != v->last_started || done != v->last_done;

	v->last_started = started;
	v->last_done = done;
	if (moved)
		v->moved_ns = now;
	return moved;
}

void correct_in_flight(struct probe *p, struct volume *v, const struct eb_vol_cpu *sum,
		       uint64_t now)
{
	struct eb_vol *shared = volume_shared(p, v);
	bool moved = volume_moved(v, sum, now), empty;
	/* The kernel does not count what waits in the scheduler of a plain disk. */
	bool may_be_empty = !moved || (v->resync && v->kind != KIND_DISK);
	uint64_t moves = volume_moves(p, v);
	int64_t inflight[EB_DIRS];

	if (now >= v->earlier_until_ns)
		set_earlier(p, v, 0, 0);
	volume_in_flight(p, v, inflight);
	empty = may_be_empty && (v->resync || inflight[EB_READ] > 0 || inflight[EB_WRITE] > 0) &&
		volume_counts_none(v, now - v->moved_ns) && volume_moves(p, v) == moves;
	for (int dir = 0; dir < EB_DIRS; dir++)
		if (inflight[dir] < 0 || empty)
			shared->unseen[dir] -= inflight[dir];
	if (empty)
		v->resync = false;
}

static bool device_is_still(struct device *d, const struct destage_counts *c, uint64_t now)
{
	uint64_t queued_ios = c->queued_ios, done_ios = c->done_ios;

	if (d->last_queued_ios != queued_ios || d->last_done_ios != done_ios) {
		d->last_queued_ios = queued_ios;
		d->last_done_ios = done_ios;
		d->moved_ns = now;
	}
	return now - d->moved_ns >= (d->resync ? RESYNC_STILL_NS : STILL_NS) &&
	       device_counts_none(d->dev, now - d->moved_ns);
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
	still = (d->resync || ios > 0 || bytes > 0) && device_is_still(d, &c, now);
	if (ios < 0 || still)
		d->unseen_ios -= ios;
	if (bytes < 0 || still)
		d->unseen_bytes -= bytes;
	if (still)
		d->resync = false;
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
