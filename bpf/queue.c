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

void say_queue(struct probe *p, struct volume *v, uint64_t now)
{
	struct eb_dev_cpu d;
	int64_t fg[EB_DIRS];

	if (v->backing < 0)
		return;
	destage_in_flight(p, v->backing, &d);
	volume_in_flight(p, v, fg);
	json_begin(&p->json, "queue", now);
	json_str(&p->json, "vol", v->name);
	json_u64(&p->json, "inflight", floor0(d.queued_ios - d.done_ios));
	json_u64(&p->json, "bytes", floor0(d.queued_bytes - d.done_bytes));
	json_u64(&p->json, "done_ios", d.done_ios);
	json_u64(&p->json, "done_bytes", d.done_bytes);
	json_u64(&p->json, "reads", reads_in_flight(p, v));
	json_u64(&p->json, "fg", floor0(fg[EB_READ] + fg[EB_WRITE]));
	say(p);
}

void set_pace(struct probe *p, struct volume *v, uint64_t pace_ns)
{
	v->pace_ns = pace_ns;
	v->queue_ns = now_ns();
	volume_shared(p, v)->paced = pace_ns != 0;
}

void check_queues(struct probe *p, uint64_t now)
{
	for (struct volume *v = p->volume; v < p->volume + EB_VOLUMES; v++) {
		if (!v->used || !v->pace_ns || now < v->queue_ns)
			continue;
		say_queue(p, v, now);
		/* No catching up after a stall: one record, then the next period. */
		v->queue_ns = now + v->pace_ns;
	}
}
