// SPDX-License-Identifier: GPL-2.0-only
#include "queue.h"

#include <stdio.h>

#include "clock.h"
#include "counters.h"
#include "in_flight.h"

/* Between its read and its write a piece waits for a worker and for its turn, but not this long. */
#define PIPELINE_EMPTY_NS (250 * NS_PER_MS)
/* After so long without a sample no piece of before is under way. */
#define UNPACED_NS NS_PER_S

static bool same_cache(const struct volume *a, const struct volume *b)
{
	return a->backing >= 0 && a->caches && b->caches && a->cache[0] == b->cache[0];
}

/* Pieces that were ever read for destage less those ever sent by any volume of the cache. */
static int64_t read_not_sent(const struct probe *p, const struct volume *v, uint64_t read_ios)
{
	int64_t difference = (int64_t)read_ios;

	for_each_volume (other, p) {
		struct destage d;

		if (!same_cache(other, v))
			continue;
		read_destage(p, other->backing, &d);
		difference -= d.queued_ios;
	}
	return difference;
}

/*
 * A piece that is overwritten while it is read is never sent, and what was under way when the
 * volume was tracked is half counted. So the difference counts from its value when nothing moved.
 * Where the kernel skipped programs it counts from now, which falls as the pieces under way are
 * sent.
 */
static uint64_t awaiting_write(struct probe *p, struct volume *v, uint64_t read_ios, bool moves,
			       uint64_t now)
{
	int64_t difference = read_not_sent(p, v, read_ios);

	if (moves)
		v->pipeline_moved_ns = now;
	if (v->pipeline_misses != p->misses) {
		v->pipeline_misses = p->misses;
		v->awaiting_write_base = NO_SAMPLE_YET;
	}
	if (difference < v->awaiting_write_base || now - v->pipeline_moved_ns >= PIPELINE_EMPTY_NS)
		v->awaiting_write_base = difference;
	return difference - v->awaiting_write_base;
}

/*
 * The shared cache has read the pieces of a volume that leaves, and nobody is left who has sent
 * them: without this the volumes that stay would seem to have all of them under way.
 */
void forget_pieces(struct probe *p, const struct volume *leaving)
{
	struct destage d;

	if (leaving->backing < 0)
		return;
	read_destage(p, leaving->backing, &d);
	for_each_volume (other, p) {
		if (other != leaving && same_cache(other, leaving) &&
		    other->awaiting_write_base != NO_SAMPLE_YET)
			other->awaiting_write_base += d.queued_ios;
	}
}

static void measure_pipeline(struct probe *p, struct volume *v, uint64_t now,
			     struct queue_sample *s)
{
	struct destage d;
	uint64_t read_ios = 0;

	correct_destage(p, v, now);
	read_destage(p, v->backing, &d);
	*s = (struct queue_sample){
		.writes = d.ios,
		.bytes = d.bytes,
		.done_ios = d.done_ios,
		.done_bytes = d.done_bytes,
	};
	for (size_t i = 0; i < v->caches; i++) {
		read_destage(p, v->cache[i], &d);
		s->reads += d.ios;
		read_ios += d.done_ios;
	}
	s->awaiting_write = awaiting_write(p, v, read_ios, s->writes || s->reads, now);
}

static bool take_sample(struct probe *p, struct volume *v, uint64_t now, struct queue_sample *s)
{
	int64_t inflight[EB_DIRS];

	if (v->backing < 0)
		return false;
	measure_pipeline(p, v, now, s);
	volume_in_flight(p, v, inflight);
	s->foreground = 0;
	for (int dir = 0; dir < EB_DIRS; dir++)
		if (inflight[dir] > 0)
			s->foreground += inflight[dir];
	return true;
}

bool check_queue(struct probe *p, struct volume *v, uint64_t now, struct queue_sample *s)
{
	if (!v->pace_ns || now < v->queue_ns)
		return false;
	/* After a stall there is one sample, then the next period. */
	v->queue_ns = now + v->pace_ns;
	return take_sample(p, v, now, s);
}

bool queue_drained(struct probe *p, struct volume *v, uint64_t now, struct queue_sample *s)
{
	return v->pace_ns && take_sample(p, v, now, s);
}

const char *set_pace(struct probe *p, struct volume *v, const struct command *cmd)
{
	static char error[REASON_BYTES + 64];
	uint64_t now = now_ns();

	if (cmd->ns && v->class_missing[0]) {
		snprintf(error, sizeof(error), "destage cannot be followed: %s", v->class_missing);
		return error;
	}
	/* What went unseen in the meantime must not seem to be under way for ever. */
	if (!v->pace_ns && now - v->queue_ns >= UNPACED_NS)
		v->awaiting_write_base = NO_SAMPLE_YET;
	if (!v->pace_ns)
		v->queue_ns = now;
	else if (v->queue_ns > now + cmd->ns)
		/* A shorter period does not wait for the end of a longer one. */
		v->queue_ns = now + cmd->ns;
	v->pace_ns = cmd->ns;
	volume_shared(p, v)->paced = cmd->ns != 0;
	return NULL;
}
