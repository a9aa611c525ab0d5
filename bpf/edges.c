// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests set no timer. When the last activity could be `wait` old, the loader looks at it, arms
 * the volume, and looks again a moment later, when each program that could have missed the flag
 * has ended. Only then the volume is idle. The next arrival takes the flag and is pushed at once.
 */
#include "edges.h"

#include "clock.h"
#include "counters.h"

/* Programs run for microseconds with preemption off; their stores are visible far sooner. */
#define SETTLE_NS NS_PER_MS

static bool nothing_in_flight(struct probe *p, struct volume *v)
{
	int64_t n[EB_DIRS];

	volume_in_flight(p, v, n);
	/* Ends whose starts were not seen must not hide requests of the other direction. */
	return n[EB_READ] <= 0 && n[EB_WRITE] <= 0;
}

static uint64_t last_activity(struct probe *p, struct volume *v)
{
	return __atomic_load_n(&volume_shared(p, v)->last_ns, __ATOMIC_ACQUIRE);
}

static struct edge become_busy(struct volume *v, uint64_t ns, uint64_t gap_ns)
{
	v->state = STATE_BUSY;
	v->check_ns = ns + v->wait_ns;
	return (struct edge){ .ns = ns, .length_ns = gap_ns };
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

	/* The end of a request in flight is activity, so idle cannot be due before. */
	if (!nothing_in_flight(p, v))
		v->check_ns = now + v->wait_ns;
	else if (last_ns + v->wait_ns > now)
		v->check_ns = last_ns + v->wait_ns;
	else
		arm(p, v, last_ns, now);
}

static bool check_armed(struct probe *p, struct volume *v, uint64_t now, struct edge *edge)
{
	struct eb_vol *shared = volume_shared(p, v);
	uint64_t last_ns = last_activity(p, v);

	if (__atomic_load_n(&shared->armed, __ATOMIC_SEQ_CST) && last_ns == v->armed_last_ns &&
	    nothing_in_flight(p, v)) {
		v->state = STATE_IDLE;
		v->check_ns = now + NS_PER_S;
		*edge = (struct edge){ .idle = true, .ns = now, .length_ns = now - last_ns };
		return true;
	}
	/* Not idle after all. If an arrival took the flag, take_busy_edge() ignores its push. */
	__atomic_store_n(&shared->armed, 0, __ATOMIC_SEQ_CST);
	v->state = STATE_BUSY;
	v->check_ns = last_ns + v->wait_ns;
	return false;
}

/* An idle volume without the flag: the push was lost (ring full, counted), so it comes late. */
static bool check_idle(struct probe *p, struct volume *v, uint64_t now, struct edge *edge)
{
	v->check_ns = now + NS_PER_S;
	if (__atomic_load_n(&volume_shared(p, v)->armed, __ATOMIC_SEQ_CST))
		return false;
	*edge = become_busy(v, now, 0);
	return true;
}

bool check_edge(struct probe *p, struct volume *v, uint64_t now, struct edge *edge)
{
	if (now < v->check_ns)
		return false;
	switch (v->state) {
	case STATE_BUSY:
		check_busy(p, v, now);
		return false;
	case STATE_ARMED:
		return check_armed(p, v, now, edge);
	case STATE_IDLE:
		return check_idle(p, v, now, edge);
	}
	return false;
}

bool take_busy_edge(struct volume *v, const struct eb_edge *pushed, struct edge *edge)
{
	bool was_idle = v->state == STATE_IDLE;

	if (was_idle)
		*edge = become_busy(v, pushed->ns, pushed->gap_ns);
	v->state = STATE_BUSY;
	return was_idle;
}

void set_wait(struct volume *v, uint64_t wait_ns)
{
	v->wait_ns = wait_ns;
	/* The new wait may be over already. */
	if (v->state == STATE_BUSY)
		v->check_ns = now_ns();
}
