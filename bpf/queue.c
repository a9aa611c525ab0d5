// SPDX-License-Identifier: GPL-2.0-only
/* Destage in flight, at the period that the controller asked for. */
#include "probe.h"

#include <stdio.h>

/* Between its read from the cache and its write a piece waits for a worker and for its turn. */
#define PIPE_EMPTY_NS 250000000ULL

struct pipe {
	uint64_t writes, bytes; /* sent to the backing device and not done */
	uint64_t reads;		/* under way on the cache devices */
	uint64_t held;		/* read and not yet sent to the backing device */
	uint64_t done_ios, done_bytes;
};

static bool same_cache(const struct volume *a, const struct volume *b)
{
	return a->used && a->backing >= 0 && a->caches && b->caches && a->cache[0] == b->cache[0];
}

/* All that was ever read for destage less all that was ever sent, by every volume of the cache. */
static int64_t read_not_sent(const struct probe *p, const struct volume *v, uint64_t read_ios)
{
	int64_t held = (int64_t)read_ios;

	for (const struct volume *w = p->volume; w < p->volume + EB_VOLUMES; w++) {
		struct destage d;

		if (!same_cache(w, v))
			continue;
		destage_in_flight(p, w->backing, &d);
		held -= d.queued_ios;
	}
	return held;
}

/*
 * A piece that was overwritten while it was read is never sent, and what was under way when the
 * volume was tracked is half counted: so the difference is counted from where nothing moved last.
 */
static void look_at_pipe(struct probe *p, struct volume *v, uint64_t now, struct pipe *pipe)
{
	struct destage d;
	uint64_t read_ios = 0;
	int64_t held;

	resync_destage(p, v, now);
	destage_in_flight(p, v->backing, &d);
	*pipe = (struct pipe){
		.writes = d.ios,
		.bytes = d.bytes,
		.done_ios = d.done_ios,
		.done_bytes = d.done_bytes,
	};
	for (size_t i = 0; i < v->caches; i++) {
		destage_in_flight(p, v->cache[i], &d);
		pipe->reads += d.ios;
		read_ios += d.done_ios;
	}
	held = read_not_sent(p, v, read_ios);
	if (pipe->writes || pipe->reads)
		v->pipe_moved_ns = now;
	if (held < v->held_base || now - v->pipe_moved_ns >= PIPE_EMPTY_NS)
		v->held_base = held;
	pipe->held = held - v->held_base;
}

/* Relaxed: a shallow queue is no news, but one look in so many says that all goes on. */
#define RELAXED_PERIODS 3

static bool worth_saying(const struct volume *v, uint64_t in_flight, uint64_t now)
{
	return !v->relaxed || in_flight > v->pace_above ||
	       now >= v->queue_said_ns + RELAXED_PERIODS * v->pace_ns;
}

static void look_at_queue(struct probe *p, struct volume *v, uint64_t now)
{
	struct pipe pipe;
	int64_t fg[EB_DIRS], under_way;

	if (v->backing < 0)
		return;
	look_at_pipe(p, v, now, &pipe);
	if (!worth_saying(v, pipe.writes + pipe.reads + pipe.held, now))
		return;
	v->queue_said_ns = now;
	volume_in_flight(p, v, fg);
	under_way = fg[EB_READ] + fg[EB_WRITE];
	json_begin(&p->json, "queue", now);
	json_str(&p->json, "vol", v->name);
	json_u64(&p->json, "inflight", pipe.writes);
	json_u64(&p->json, "bytes", pipe.bytes);
	json_u64(&p->json, "done_ios", pipe.done_ios);
	json_u64(&p->json, "done_bytes", pipe.done_bytes);
	json_u64(&p->json, "reads", pipe.reads);
	json_u64(&p->json, "held", pipe.held);
	json_u64(&p->json, "fg", under_way > 0 ? under_way : 0);
	say(p);
}

void queue_drained(struct probe *p, struct volume *v, uint64_t now)
{
	if (!v->relaxed)
		look_at_queue(p, v, now);
}

const char *set_pace(struct probe *p, struct volume *v, const struct command *cmd)
{
	static char complaint[WHY_BYTES + 64];
	bool began = !v->pace_ns;

	if (cmd->ns && v->class_missing[0]) {
		snprintf(complaint, sizeof(complaint), "destage cannot be followed: %s",
			 v->class_missing);
		return complaint;
	}
	v->pace_ns = cmd->ns;
	v->relaxed = cmd->relaxed;
	v->pace_above = cmd->above;
	if (began)
		v->queue_ns = now_ns();
	/* Nobody waits for the empty queue of a relaxed pace: no edge for it either. */
	volume_shared(p, v)->paced = cmd->ns && !cmd->relaxed;
	return NULL;
}

void check_queues(struct probe *p, uint64_t now)
{
	for (struct volume *v = p->volume; v < p->volume + EB_VOLUMES; v++) {
		if (!v->used || !v->pace_ns || now < v->queue_ns)
			continue;
		look_at_queue(p, v, now);
		/* No catching up after a stall: one record, then the next period. */
		v->queue_ns = now + v->pace_ns;
	}
}
