// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests in flight are starts minus ends. A request that began before the volume was
 * tracked ends without a start; one whose end the kernel skipped never ends. When nothing
 * moves and the kernel itself counts none in flight, the difference is a debt.
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

void resync(struct probe *p, struct volume *v)
{
	uint64_t kernel[EB_DIRS];
	int64_t ours[EB_DIRS];
	struct eb_vol_cpu c;
	struct eb_vol *shared = volume_shared(p, v);

	sum_volume(p, v, &c);
	volume_in_flight(p, v, ours);
	if (moved(v, &c) && ours[EB_READ] >= 0 && ours[EB_WRITE] >= 0)
		return;
	if (!ours[EB_READ] && !ours[EB_WRITE])
		return;
	if (!block_in_flight(v->dev, kernel) || kernel[EB_READ] || kernel[EB_WRITE])
		return;
	shared->owed[EB_READ] -= ours[EB_READ];
	shared->owed[EB_WRITE] -= ours[EB_WRITE];
}
