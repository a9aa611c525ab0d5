// SPDX-License-Identifier: GPL-2.0-only
/* Idle and busy edges, from shared state that a test changes as the programs would. */
#include "check.h"
#include "clock.h"
#include "edges.h"

#include <string.h>

#define WAIT_NS (300 * NS_PER_MS)
#define BEGIN_NS (5 * NS_PER_S)

static struct eb_shared shared;
static struct eb_cpu cpu;
static struct probe p = { .ncpu = 1, .shared = &shared, .cpu = &cpu };
static struct volume *v = &p.volume[0];
static struct edge edge;

uint64_t now_ns(void)
{
	return BEGIN_NS;
}

static void begin(void)
{
	memset(&shared, 0, sizeof(shared));
	memset(&cpu, 0, sizeof(cpu));
	*v = (struct volume){ .used = true, .wait_ns = WAIT_NS, .check_ns = BEGIN_NS + WAIT_NS };
	shared.vol[0].last_ns = BEGIN_NS;
}

/* The volume goes idle; returns when. */
static uint64_t go_idle(void)
{
	CHECK(!check_edge(&p, v, v->check_ns, &edge));
	CHECK(check_edge(&p, v, v->check_ns, &edge) && edge.idle);
	return edge.ns;
}

static void a_volume_goes_idle_after_the_wait(void)
{
	begin();
	CHECK(!check_edge(&p, v, BEGIN_NS + WAIT_NS - 1, &edge));
	CHECK_EQ(go_idle(), BEGIN_NS + WAIT_NS + NS_PER_MS);
	CHECK_EQ(edge.length_ns, WAIT_NS + NS_PER_MS);
	CHECK_EQ(shared.vol[0].armed, 1);
}

static void a_volume_with_a_request_in_flight_stays_busy(void)
{
	begin();
	cpu.volume[0].started[EB_READ] = 1;
	CHECK(!check_edge(&p, v, BEGIN_NS + WAIT_NS, &edge));
	CHECK_EQ(v->state, STATE_BUSY);
	CHECK_EQ(v->check_ns, BEGIN_NS + 2 * WAIT_NS);
}

static void ends_of_reads_that_were_not_seen_to_begin_hide_no_write(void)
{
	begin();
	cpu.volume[0].done[EB_READ] = 5;
	cpu.volume[0].started[EB_WRITE] = 1;
	CHECK(!check_edge(&p, v, BEGIN_NS + WAIT_NS, &edge));
	CHECK_EQ(v->state, STATE_BUSY);
	cpu.volume[0].done[EB_WRITE] = 1;
	(void)go_idle();
}

static void an_arrival_while_the_volume_is_armed_keeps_it_busy(void)
{
	begin();
	CHECK(!check_edge(&p, v, v->check_ns, &edge));
	CHECK_EQ(v->state, STATE_ARMED);
	shared.vol[0].last_ns = v->check_ns;
	CHECK(!check_edge(&p, v, v->check_ns, &edge));
	CHECK_EQ(v->state, STATE_BUSY);
	CHECK_EQ(shared.vol[0].armed, 0);
}

static void a_push_ends_the_idle_time_once(void)
{
	struct eb_edge pushed = { .ns = BEGIN_NS + NS_PER_S, .gap_ns = 7, .kind = EB_EDGE_BUSY };

	begin();
	CHECK(!take_busy_edge(v, &pushed, &edge));
	(void)go_idle();
	CHECK(take_busy_edge(v, &pushed, &edge));
	CHECK(!edge.idle);
	CHECK_EQ(edge.ns, pushed.ns);
	CHECK_EQ(edge.length_ns, 7);
	CHECK_EQ(v->check_ns, pushed.ns + WAIT_NS);
	CHECK(!take_busy_edge(v, &pushed, &edge));
}

static void a_push_that_was_lost_is_found_within_a_second(void)
{
	uint64_t idle_ns;

	begin();
	idle_ns = go_idle();
	shared.vol[0].armed = 0;
	CHECK(!check_edge(&p, v, idle_ns + NS_PER_S - 1, &edge));
	CHECK(check_edge(&p, v, idle_ns + NS_PER_S, &edge) && !edge.idle);
	CHECK_EQ(v->state, STATE_BUSY);
}

static void a_shorter_wait_takes_effect_at_once(void)
{
	begin();
	set_wait(v, NS_PER_MS);
	CHECK_EQ(v->check_ns, BEGIN_NS);
}

int main(void)
{
	RUN(a_volume_goes_idle_after_the_wait);
	RUN(a_volume_with_a_request_in_flight_stays_busy);
	RUN(ends_of_reads_that_were_not_seen_to_begin_hide_no_write);
	RUN(an_arrival_while_the_volume_is_armed_keeps_it_busy);
	RUN(a_push_ends_the_idle_time_once);
	RUN(a_push_that_was_lost_is_found_within_a_second);
	RUN(a_shorter_wait_takes_effect_at_once);
	return check_done();
}
