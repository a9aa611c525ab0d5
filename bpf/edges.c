// SPDX-License-Identifier: GPL-2.0-only
/*
 * Idle and busy edges. A request costs no timer: the loader looks at the shared last
 * activity when it could be `wait` old, arms the volume, and looks again a moment later,
 * when every program that could have missed the flag has long ended. Only then it says
 * idle. The next arrival takes the flag and is pushed at once.
 */
#include "probe.h"

/* Programs run for microseconds with preemption off; their stores are visible far sooner. */
#define SETTLE_NS NS_PER_MS

static bool nothing_in_flight(struct probe *p, struct volume *v)
{
	int64_t n[EB_DIRS];

	volume_in_flight(p, v, n);
	return n[EB_READ] + n[EB_WRITE] <= 0;
}

static uint64_t last_activity(struct probe *p, struct volume *v)
{
	return __atomic_load_n(&volume_shared(p, v)->last_ns, __ATOMIC_ACQUIRE);
}

static void say_edge(struct probe *p, struct volume *v, const char *edge, uint64_t ns,
		     const char *length_key, uint64_t length_ns)
{
	json_begin(&p->json, "edge", ns);
	json_str(&p->json, "vol", v->name);
	json_str(&p->json, "edge", edge);
	json_u64(&p->json, length_key, length_ns);
	say(p);
}

static void become_busy(struct probe *p, struct volume *v, uint64_t ns, uint64_t gap_ns)
{
	say_edge(p, v, "busy", ns, "gap_ns", gap_ns);
	v->state = STATE_BUSY;
	v->check_ns = ns + v->wait_ns;
}

static void arm(struct probe *p, struct volume *v, uint64_t last_ns, uint64_t now)
{
	v->armed_last_ns = last_ns;
	v->state = STATE_ARMED;
	v->check_ns = now + SETTLE_NS;
	__atomic_store_n(&volume_shared(p, v)->armed, 1, __ATOMIC_SEQ_CST);
}

static void check_busy(struct probe *p, struct volume *v, uint64_t now)
{
	uint64_t last_ns = last_activity(p, v);

	/* The end of a request in flight is activity: it cannot be due before. */
	if (!nothing_in_flight(p, v))
		v->check_ns = now + v->wait_ns;
	else if (last_ns + v->wait_ns > now)
		v->check_ns = last_ns + v->wait_ns;
	else
		arm(p, v, last_ns, now);
}

static void check_armed(struct probe *p, struct volume *v, uint64_t now)
{
	struct eb_vol *shared = volume_shared(p, v);
	uint64_t last_ns = last_activity(p, v);

	if (__atomic_load_n(&shared->armed, __ATOMIC_SEQ_CST) && last_ns == v->armed_last_ns &&
	    nothing_in_flight(p, v)) {
		v->state = STATE_IDLE;
		v->check_ns = now + NS_PER_S;
		say_edge(p, v, "idle", now, "idle_ns", now - last_ns);
		return;
	}
	/* Not idle after all. If an arrival took the flag, its push finds us busy: ignored. */
	__atomic_store_n(&shared->armed, 0, __ATOMIC_SEQ_CST);
	v->state = STATE_BUSY;
	v->check_ns = last_ns + v->wait_ns;
}

/* Idle without the flag: the push was lost (ring full, counted). Say it late, but say it. */
static void check_idle(struct probe *p, struct volume *v, uint64_t now)
{
	v->check_ns = now + NS_PER_S;
	if (!__atomic_load_n(&volume_shared(p, v)->armed, __ATOMIC_SEQ_CST))
		become_busy(p, v, now, 0);
}

void check_edges(struct probe *p, uint64_t now)
{
	for (struct volume *v = p->volume; v < p->volume + EB_VOLUMES; v++) {
		if (!v->used || now < v->check_ns)
			continue;
		if (v->state == STATE_BUSY)
			check_busy(p, v, now);
		else if (v->state == STATE_ARMED)
			check_armed(p, v, now);
		else
			check_idle(p, v, now);
	}
}

void set_wait(struct probe *p, struct volume *v, uint64_t wait_ns)
{
	v->wait_ns = wait_ns;
	/* Look at once: the new wait may be over already. */
	if (v->state == STATE_BUSY)
		v->check_ns = now_ns();
	(void)p;
}

int on_edge(void *probe, void *data, size_t bytes)
{
	struct probe *p = probe;
	const struct eb_edge *edge = data;
	struct volume *v;

	if (bytes < sizeof(*edge) || edge->volume >= EB_VOLUMES)
		return 0;
	v = &p->volume[edge->volume];
	if (!v->used)
		return 0;
	if (edge->kind == EB_EDGE_DRAINED && v->pace_ns)
		queue_drained(p, v, edge->ns);
	if (edge->kind != EB_EDGE_BUSY)
		return 0;
	if (v->state == STATE_IDLE)
		become_busy(p, v, edge->ns, edge->gap_ns);
	v->state = STATE_BUSY;
	return 0;
}
