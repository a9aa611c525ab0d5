// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests in flight are starts minus ends. A request that began before the volume was
 * tracked ends without a start; one whose end the kernel skipped never ends. So: begin with
 * what the kernel counts; a negative number is a debt; and so is a positive one when nothing
 * moves and the kernel counts none.
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
