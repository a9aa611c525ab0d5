// SPDX-License-Identifier: GPL-2.0-only
/* Destage in flight, at the period that the controller asked for. */
#include "probe.h"

#include <string.h>

static uint64_t floor0(int64_t n)
{
	return n > 0 ? n : 0;
}

static uint64_t reads_in_flight(struct probe *p, struct volume *v)
{
	int64_t reads = 0;

	for (size_t i = 0; i < v->caches; i++) {
		struct eb_dev_cpu d;

		destage_in_flight(p, v->cache[i], &d);
		reads += d.queued_ios - d.done_ios;
	}
	return floor0(reads);
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
	struct eb_dev_cpu d;
	int64_t fg[EB_DIRS];
	uint64_t writes, reads;

	if (v->backing < 0)
		return;
	destage_in_flight(p, v->backing, &d);
	writes = floor0(d.queued_ios - d.done_ios);
	reads = reads_in_flight(p, v);
	if (!worth_saying(v, writes + reads, now))
		return;
	v->queue_said_ns = now;
	volume_in_flight(p, v, fg);
	json_begin(&p->json, "queue", now);
	json_str(&p->json, "vol", v->name);
	json_u64(&p->json, "inflight", writes);
	json_u64(&p->json, "bytes", floor0(d.queued_bytes - d.done_bytes));
	json_u64(&p->json, "done_ios", d.done_ios);
	json_u64(&p->json, "done_bytes", d.done_bytes);
	json_u64(&p->json, "reads", reads);
	json_u64(&p->json, "fg", floor0(fg[EB_READ] + fg[EB_WRITE]));
	say(p);
}

void queue_drained(struct probe *p, struct volume *v, uint64_t now)
{
	if (!v->relaxed)
		look_at_queue(p, v, now);
}

void set_pace(struct probe *p, struct volume *v, const struct command *cmd)
{
	bool began = !v->pace_ns;

	v->pace_ns = cmd->ns;
	v->relaxed = cmd->relaxed;
	v->pace_above = cmd->above;
	if (began)
		v->queue_ns = now_ns();
	/* Nobody waits for the empty queue of a relaxed pace: no edge for it either. */
	volume_shared(p, v)->paced = cmd->ns && !cmd->relaxed;
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
