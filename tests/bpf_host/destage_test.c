// SPDX-License-Identifier: GPL-2.0-only
/* Destage in flight, from counters that a test moves as the programs would. */
#include "check.h"
#include "clock.h"
#include "in_flight.h"
#include "queue.h"
#include "two_cpus.h"

#include <string.h>

#define PIECE 4096
#define BACKING 0
#define CACHE 1

static struct volume *v = &p.volume[0];
static uint64_t now;
static uint64_t kernel_in_flight;
static bool kernel_answers;
static struct queue_sample sample;

/* What queue.c and in_flight.c need of the rest of the loader. */
uint64_t now_ns(void)
{
	return now;
}

bool block_in_flight(uint32_t dev, uint64_t inflight[EB_DIRS])
{
	(void)dev;
	inflight[EB_READ] = 0;
	inflight[EB_WRITE] = kernel_in_flight;
	return kernel_answers;
}

bool block_device_exists(uint32_t dev)
{
	(void)dev;
	return true;
}

static void begin(void)
{
	memset(&shared, 0, sizeof(shared));
	memset(cpu, 0, sizeof(cpu));
	now = 5 * NS_PER_S;
	kernel_in_flight = 0;
	kernel_answers = true;
	p.device[BACKING] = (struct device){ .dev = 8, .users = 1, .moved_ns = now };
	p.device[CACHE] = (struct device){ .dev = 9, .users = 1, .moved_ns = now };
	*v = (struct volume){
		.used = true,
		.kind = KIND_BCACHE,
		.backing = BACKING,
		.cache = { CACHE },
		.caches = 1,
		.pace_ns = 20 * NS_PER_MS,
	};
}

/* Sent on one CPU, done on the other. */
static void sent(int device, unsigned int n)
{
	cpu[0].device[device].queued_ios += n;
	cpu[0].device[device].queued_bytes += (uint64_t)n * PIECE;
}

static void done(int device, unsigned int n)
{
	cpu[1].device[device].copied[EB_DESTAGE].ios += n;
	cpu[1].device[device].copied[EB_DESTAGE].bytes += (uint64_t)n * PIECE;
}

/* A sample that is taken some time later. */
static const struct queue_sample *after(uint64_t later_ns)
{
	now += later_ns;
	v->queue_ns = 0;
	CHECK(check_queue(&p, v, now, &sample));
	return &sample;
}

static void writes_under_way_are_counted(void)
{
	begin();
	sent(BACKING, 5);
	done(BACKING, 2);
	CHECK_EQ(after(NS_PER_MS)->writes, 3);
	CHECK_EQ(after(NS_PER_MS)->bytes, 3 * PIECE);
	done(BACKING, 3);
	CHECK_EQ(after(NS_PER_MS)->writes, 0);
}

static void writes_from_before_tracking_are_forgotten_once_they_are_done(void)
{
	begin();
	kernel_in_flight = 64;
	done(BACKING, 64);
	CHECK_EQ(after(NS_PER_MS)->writes, 0);
	CHECK_EQ(after(NS_PER_MS)->done_ios, 64);
	sent(BACKING, 10);
	CHECK_EQ(after(NS_PER_MS)->writes, 10);
	CHECK_EQ(after(NS_PER_MS)->bytes, 10 * PIECE);
	/* The programs compare with the same number, to tell at once when nothing is left. */
	CHECK_EQ(shared.vol[0].destage_unseen, 64);
	done(BACKING, 10);
	CHECK_EQ(after(NS_PER_MS)->writes, 0);
}

static void reads_of_the_cache_device_from_before_are_forgotten_too(void)
{
	begin();
	done(CACHE, 30);
	CHECK_EQ(after(NS_PER_MS)->reads, 0);
	sent(CACHE, 4);
	CHECK_EQ(after(NS_PER_MS)->reads, 4);
}

static void an_end_that_was_never_seen_goes_when_nothing_moves(void)
{
	begin();
	sent(BACKING, 7);
	done(BACKING, 4);
	CHECK_EQ(after(NS_PER_MS)->writes, 3);
	CHECK_EQ(after(NS_PER_S - NS_PER_MS)->writes, 3);
	CHECK_EQ(after(2 * NS_PER_MS)->writes, 0);
	CHECK_EQ(after(NS_PER_MS)->bytes, 0);
	sent(BACKING, 2);
	CHECK_EQ(after(NS_PER_MS)->writes, 2);
}

static void what_the_kernel_still_works_on_stays(void)
{
	begin();
	sent(BACKING, 3);
	kernel_in_flight = 1;
	CHECK_EQ(after(NS_PER_MS)->writes, 3);
	CHECK_EQ(after(10 * NS_PER_S)->writes, 3);
	kernel_answers = false;
	kernel_in_flight = 0;
	CHECK_EQ(after(10 * NS_PER_S)->writes, 3);
}

static void where_the_kernel_does_not_count_an_end_is_awaited_for_30_seconds(void)
{
	begin();
	kernel_answers = false;
	sent(BACKING, 3);
	CHECK_EQ(after(NS_PER_MS)->writes, 3);
	CHECK_EQ(after(30 * NS_PER_S - 1)->writes, 3);
	CHECK_EQ(after(1)->writes, 0);
}

static void a_queue_that_moves_is_not_corrected(void)
{
	begin();
	sent(BACKING, 3);
	for (int i = 0; i < 10; i++) {
		sent(BACKING, 1);
		done(BACKING, 1);
		CHECK_EQ(after(NS_PER_S)->writes, 3);
	}
}

static void a_tick_corrects_without_any_pace(void)
{
	begin();
	v->pace_ns = 0;
	done(BACKING, 64);
	correct_destage(&p, v, now);
	v->pace_ns = 20 * NS_PER_MS;
	sent(BACKING, 1);
	CHECK_EQ(after(NS_PER_MS)->writes, 1);
}

static void a_volume_whose_destage_cannot_be_told_is_not_paced(void)
{
	struct command cmd = { .verb = VERB_PACE, .ns = 20 * NS_PER_MS };
	const char *error;

	begin();
	v->pace_ns = 0;
	strcpy(v->class_missing, "the kernel hides it");
	error = set_pace(&p, v, &cmd);
	CHECK(error && strstr(error, "the kernel hides it"));
	CHECK(!v->pace_ns && !shared.vol[0].paced);
	cmd.ns = 0;
	CHECK(!set_pace(&p, v, &cmd));
	cmd.ns = 20 * NS_PER_MS;
	v->class_missing[0] = '\0';
	CHECK(!set_pace(&p, v, &cmd));
	CHECK(v->pace_ns && shared.vol[0].paced);
}

/* One more volume on the same cache, with a backing device of its own. */
static struct volume *another(int backing)
{
	struct volume *other = &p.volume[1];

	p.device[backing] = (struct device){ .dev = 10, .users = 1, .moved_ns = now };
	p.device[CACHE].users++;
	*other = *v;
	other->backing = backing;
	other->awaiting_write_base = NO_SAMPLE_YET;
	return other;
}

static void whole_pieces(int backing, unsigned int n)
{
	sent(CACHE, n);
	done(CACHE, n);
	sent(backing, n);
	done(backing, n);
}

static void pieces_of_a_volume_that_leaves_are_not_under_way(void)
{
	struct volume *other;

	begin();
	v->awaiting_write_base = NO_SAMPLE_YET;
	other = another(2);
	whole_pieces(BACKING, 500);
	whole_pieces(2, 100000);
	sent(BACKING, 1);
	CHECK_EQ(after(20 * NS_PER_MS)->awaiting_write, 0);
	forget_pieces(&p, other);
	other->used = false;
	for (unsigned int i = 0; i < 100; i++) {
		whole_pieces(BACKING, 5);
		CHECK_EQ(after(20 * NS_PER_MS)->awaiting_write, 0);
	}
	/* What is read and not yet sent counts as before. */
	sent(CACHE, 3);
	done(CACHE, 3);
	CHECK_EQ(after(20 * NS_PER_MS)->awaiting_write, 3);
}

static void a_volume_that_comes_has_none_of_the_others_under_way(void)
{
	begin();
	v->awaiting_write_base = NO_SAMPLE_YET;
	another(2);
	/* Of a third one, which has left. */
	sent(CACHE, 700);
	done(CACHE, 700);
	sent(BACKING, 1);
	CHECK_EQ(after(20 * NS_PER_MS)->awaiting_write, 0);
}

static void ends_of_reads_that_were_not_seen_to_begin_hide_no_write(void)
{
	begin();
	cpu[0].volume[0].done[EB_READ] = 5;
	cpu[1].volume[0].started[EB_WRITE] = 2;
	CHECK_EQ(after(NS_PER_MS)->foreground, 2);
	cpu[0].volume[0].done[EB_WRITE] = 2;
	CHECK_EQ(after(NS_PER_MS)->foreground, 0);
}

static void pieces_of_skipped_programs_are_not_under_way_for_ever(void)
{
	begin();
	p.misses = 7;
	v->awaiting_write_base = NO_SAMPLE_YET;
	sent(BACKING, 1);
	CHECK_EQ(after(20 * NS_PER_MS)->awaiting_write, 0);
	/* Of five pieces that were read and sent, the kernel skipped the programs of two. */
	whole_pieces(BACKING, 3);
	sent(CACHE, 2);
	done(CACHE, 2);
	CHECK_EQ(after(20 * NS_PER_MS)->awaiting_write, 2);
	resync_after_misses(&p, 9);
	for (unsigned int i = 0; i < 100; i++) {
		whole_pieces(BACKING, 5);
		CHECK_EQ(after(20 * NS_PER_MS)->awaiting_write, 0);
	}
	sent(CACHE, 3);
	done(CACHE, 3);
	CHECK_EQ(after(20 * NS_PER_MS)->awaiting_write, 3);
}

static void pieces_stay_under_way_in_a_short_time_without_pace(void)
{
	struct command cmd = { .verb = VERB_PACE };

	begin();
	v->awaiting_write_base = NO_SAMPLE_YET;
	sent(BACKING, 1);
	CHECK_EQ(after(20 * NS_PER_MS)->awaiting_write, 0);
	sent(CACHE, 3);
	done(CACHE, 3);
	CHECK(!set_pace(&p, v, &cmd));
	now += 50 * NS_PER_MS;
	cmd.ns = 20 * NS_PER_MS;
	CHECK(!set_pace(&p, v, &cmd));
	CHECK_EQ(after(NS_PER_MS)->awaiting_write, 3);
}

static void pieces_that_went_unseen_while_it_was_not_paced_are_not_under_way(void)
{
	struct command cmd = { .verb = VERB_PACE };

	begin();
	v->awaiting_write_base = NO_SAMPLE_YET;
	sent(BACKING, 1);
	CHECK_EQ(after(20 * NS_PER_MS)->awaiting_write, 0);
	CHECK(!set_pace(&p, v, &cmd));
	/* The kernel skipped programs, or a volume that is not tracked shares the cache. */
	sent(CACHE, 700);
	done(CACHE, 700);
	now += NS_PER_S;
	cmd.ns = 20 * NS_PER_MS;
	CHECK(!set_pace(&p, v, &cmd));
	for (unsigned int i = 0; i < 100; i++) {
		whole_pieces(BACKING, 5);
		CHECK_EQ(after(20 * NS_PER_MS)->awaiting_write, 0);
	}
	sent(CACHE, 3);
	done(CACHE, 3);
	CHECK_EQ(after(20 * NS_PER_MS)->awaiting_write, 3);
}

static void a_shorter_period_takes_effect_at_once(void)
{
	struct command cmd = { .verb = VERB_PACE, .ns = 60 * NS_PER_S };

	begin();
	v->pace_ns = 0;
	CHECK(!set_pace(&p, v, &cmd));
	CHECK(check_queue(&p, v, now, &sample));
	cmd.ns = 20 * NS_PER_MS;
	CHECK(!set_pace(&p, v, &cmd));
	CHECK(!check_queue(&p, v, now + 20 * NS_PER_MS - 1, &sample));
	CHECK(check_queue(&p, v, now + 20 * NS_PER_MS, &sample));
}

int main(void)
{
	RUN(writes_under_way_are_counted);
	RUN(writes_from_before_tracking_are_forgotten_once_they_are_done);
	RUN(reads_of_the_cache_device_from_before_are_forgotten_too);
	RUN(an_end_that_was_never_seen_goes_when_nothing_moves);
	RUN(what_the_kernel_still_works_on_stays);
	RUN(where_the_kernel_does_not_count_an_end_is_awaited_for_30_seconds);
	RUN(a_queue_that_moves_is_not_corrected);
	RUN(a_tick_corrects_without_any_pace);
	RUN(a_volume_whose_destage_cannot_be_told_is_not_paced);
	RUN(ends_of_reads_that_were_not_seen_to_begin_hide_no_write);
	RUN(pieces_of_skipped_programs_are_not_under_way_for_ever);
	RUN(pieces_stay_under_way_in_a_short_time_without_pace);
	RUN(pieces_that_went_unseen_while_it_was_not_paced_are_not_under_way);
	RUN(a_shorter_period_takes_effect_at_once);
	RUN(pieces_of_a_volume_that_leaves_are_not_under_way);
	RUN(a_volume_that_comes_has_none_of_the_others_under_way);
	return check_done();
}
