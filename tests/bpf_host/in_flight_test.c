// SPDX-License-Identifier: GPL-2.0-only
/* Requests of users in flight, where starts or ends were not seen. */
#include "check.h"
#include "clock.h"
#include "counters.h"
#include "in_flight.h"
#include "two_cpus.h"

#include <string.h>

static struct volume *v = &p.volume[0];
static uint64_t kernel_in_flight, kernel_in_flight_part;
static uint64_t started_while_read;
static bool part_answers, part_exists, kernel_counts;

#define PART 9

bool block_in_flight(uint32_t dev, uint64_t inflight[EB_DIRS])
{
	cpu[0].volume[0].started[EB_READ] += started_while_read;
	inflight[EB_READ] = dev == PART ? kernel_in_flight_part : kernel_in_flight;
	inflight[EB_WRITE] = 0;
	return kernel_counts && (dev != PART || part_answers);
}

bool block_device_exists(uint32_t dev)
{
	return dev != PART || part_exists;
}

static void begin(enum kind kind)
{
	memset(&shared, 0, sizeof(shared));
	memset(cpu, 0, sizeof(cpu));
	memset(p.device, 0, sizeof(p.device));
	kernel_in_flight = kernel_in_flight_part = 0;
	started_while_read = 0;
	part_answers = part_exists = kernel_counts = true;
	p.misses = 0;
	*v = (struct volume){ .used = true, .kind = kind, .backing = -1 };
}

static void begin_with_partition(void)
{
	begin(KIND_BCACHE);
	v->part[0] = PART;
	v->parts = 1;
}

static void started(unsigned int n)
{
	cpu[0].volume[0].started[EB_READ] += n;
}

static void done(unsigned int n)
{
	cpu[1].volume[0].done[EB_READ] += n;
}

/* A tick: the count in flight after its corrections. */
static int64_t tick_at(uint64_t now, uint64_t misses)
{
	struct eb_vol_cpu sum;
	int64_t inflight[EB_DIRS];

	resync_after_misses(&p, misses);
	sum_volume(&p, v, &sum);
	correct_in_flight(&p, v, &sum, now);
	volume_in_flight(&p, v, inflight);
	return inflight[EB_READ];
}

static int64_t tick(uint64_t misses)
{
	return tick_at(0, misses);
}

static void an_end_that_was_skipped_goes_at_once_from_a_volume_that_never_stands_still(void)
{
	begin(KIND_BCACHE);
	started(4);
	done(3);
	CHECK_EQ(tick(0), 1);
	started(1);
	done(1);
	CHECK_EQ(tick(0), 1);
	started(1);
	done(1);
	CHECK_EQ(tick(1), 0);
	started(2);
	CHECK_EQ(tick(1), 2);
}

static void the_kernels_own_count_must_be_zero_first(void)
{
	begin(KIND_BCACHE);
	started(2);
	kernel_in_flight = 1;
	CHECK_EQ(tick(1), 2);
	started(1);
	done(2);
	kernel_in_flight = 0;
	CHECK_EQ(tick(1), 0);
	CHECK(!v->resync);
}

static void a_request_that_begins_meanwhile_puts_it_off(void)
{
	begin(KIND_BCACHE);
	started(1);
	started_while_read = 1;
	CHECK_EQ(tick(1), 2);
	CHECK(v->resync);
	started_while_read = 0;
	done(1);
	CHECK_EQ(tick(1), 0);
}

static void a_start_that_was_skipped_goes_too(void)
{
	begin(KIND_BCACHE);
	started(1);
	done(2);
	CHECK_EQ(tick(1), 0);
	started(3);
	CHECK_EQ(tick(1), 3);
}

static void a_request_that_waits_at_a_partition_stays_counted(void)
{
	begin_with_partition();
	started(1);
	kernel_in_flight_part = 1;
	CHECK_EQ(tick(0), 1);
	CHECK_EQ(tick(0), 1);
	CHECK_EQ(tick(1), 1);
	kernel_in_flight_part = 0;
	CHECK_EQ(tick(1), 0);
}

static void a_partition_that_does_not_answer_is_unknown_unless_it_is_gone(void)
{
	begin_with_partition();
	started(1);
	part_answers = false;
	CHECK_EQ(tick(0), 1);
	CHECK_EQ(tick(0), 1);
	part_exists = false;
	CHECK_EQ(tick(0), 0);
}

static void requests_to_a_partition_from_before_tracking_count(void)
{
	begin_with_partition();
	kernel_in_flight = 1;
	kernel_in_flight_part = 2;
	init_in_flight(&p, v);
	done(1);
	CHECK_EQ(tick(0), 2);
	done(2);
	CHECK_EQ(tick(0), 0);
}

static void requests_from_before_tracking_may_end_for_a_while(void)
{
	begin(KIND_BCACHE);
	v->earlier_until_ns = 7 * NS_PER_S;
	kernel_in_flight = 3;
	expect_earlier(&p, v);
	/* The programs see the volume, and requests end, before the kernel is asked. */
	CHECK(shared.vol[0].earlier[EB_READ] > 1000000);
	CHECK(shared.vol[0].earlier[EB_WRITE] > 1000000);
	init_in_flight(&p, v);
	CHECK_EQ(shared.vol[0].earlier[EB_READ], 3);
	CHECK_EQ(shared.vol[0].earlier[EB_WRITE], 0);
	tick_at(7 * NS_PER_S - 1, 0);
	CHECK_EQ(shared.vol[0].earlier[EB_READ], 3);
	tick_at(7 * NS_PER_S, 0);
	CHECK_EQ(shared.vol[0].earlier[EB_READ], 0);
}

static void where_the_kernel_does_not_count_none_are_from_before_tracking(void)
{
	begin_with_partition();
	kernel_in_flight = 3;
	part_answers = false;
	expect_earlier(&p, v);
	init_in_flight(&p, v);
	CHECK_EQ(shared.vol[0].earlier[EB_READ], 0);
	CHECK_EQ(shared.vol[0].earlier[EB_WRITE], 0);
}

static void a_plain_disk_must_stand_still_because_its_scheduler_may_hold_requests(void)
{
	begin(KIND_DISK);
	started(4096);
	CHECK_EQ(tick(1), 4096);
	CHECK_EQ(tick(1), 0);
}

static void destage_need_not_stand_still_for_long(void)
{
	uint64_t now = 5 * NS_PER_S;
	struct destage d;

	begin(KIND_BCACHE);
	v->backing = 0;
	p.device[0] = (struct device){ .dev = 8, .users = 1, .moved_ns = now };
	cpu[0].device[0].queued_ios = 3;
	correct_destage(&p, v, now);
	resync_after_misses(&p, 7);
	correct_destage(&p, v, now + 99 * NS_PER_MS);
	read_destage(&p, 0, &d);
	CHECK_EQ(d.ios, 3);
	correct_destage(&p, v, now + 100 * NS_PER_MS);
	read_destage(&p, 0, &d);
	CHECK_EQ(d.ios, 0);
	CHECK(!p.device[0].resync);
}

static void where_the_kernel_does_not_count_an_end_is_awaited_for_30_seconds(void)
{
	begin(KIND_DISK);
	kernel_counts = false;
	started(4096);
	CHECK_EQ(tick_at(NS_PER_S, 0), 4096);
	CHECK_EQ(tick_at(2 * NS_PER_S, 0), 4096);
	CHECK_EQ(tick_at(31 * NS_PER_S - 1, 0), 4096);
	CHECK_EQ(tick_at(31 * NS_PER_S, 0), 0);
}

int main(void)
{
	RUN(an_end_that_was_skipped_goes_at_once_from_a_volume_that_never_stands_still);
	RUN(the_kernels_own_count_must_be_zero_first);
	RUN(a_request_that_begins_meanwhile_puts_it_off);
	RUN(a_start_that_was_skipped_goes_too);
	RUN(a_request_that_waits_at_a_partition_stays_counted);
	RUN(a_partition_that_does_not_answer_is_unknown_unless_it_is_gone);
	RUN(requests_to_a_partition_from_before_tracking_count);
	RUN(requests_from_before_tracking_may_end_for_a_while);
	RUN(where_the_kernel_does_not_count_none_are_from_before_tracking);
	RUN(a_plain_disk_must_stand_still_because_its_scheduler_may_hold_requests);
	RUN(destage_need_not_stand_still_for_long);
	RUN(where_the_kernel_does_not_count_an_end_is_awaited_for_30_seconds);
	return check_done();
}
