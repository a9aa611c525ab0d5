// SPDX-License-Identifier: GPL-2.0-only
/* Destage in flight, from counters that a test moves as the programs would. */
#include "check.h"
#include "probe.h"

#include <stdlib.h>
#include <string.h>

#define CPUS 2
#define PIECE 4096
#define BACKING 0
#define CACHE 1

static struct eb_shared shared;
static struct eb_vol_cpu vol_cpu[EB_VOLUMES * CPUS];
static struct eb_dev_cpu dev_cpu[EB_DEVICES * CPUS];
static struct probe p = {
	.ncpu = CPUS,
	.shared = &shared,
	.vol_cpu = vol_cpu,
	.dev_cpu = dev_cpu,
};
static struct volume *v = &p.volume[0];
static uint64_t now;
static uint64_t kernel_in_flight;
static bool kernel_answers;

/* What queue.c and resync.c need of the rest of the loader. */
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

void say(struct probe *probe)
{
	probe->json.text[probe->json.len] = '\0';
}

static void begin(void)
{
	memset(&shared, 0, sizeof(shared));
	memset(dev_cpu, 0, sizeof(dev_cpu));
	memset(vol_cpu, 0, sizeof(vol_cpu));
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
	dev_cpu[device * CPUS].queued_ios += n;
	dev_cpu[device * CPUS].queued_bytes += (uint64_t)n * PIECE;
}

static void done(int device, unsigned int n)
{
	dev_cpu[device * CPUS + 1].copied[EB_DESTAGE].ios += n;
	dev_cpu[device * CPUS + 1].copied[EB_DESTAGE].bytes += (uint64_t)n * PIECE;
}

/* A field of the queue record after some time. */
static uint64_t record(const char *field, uint64_t later_ns)
{
	char key[32];
	const char *at;

	now += later_ns;
	v->queue_ns = 0;
	check_queues(&p, now);
	snprintf(key, sizeof(key), "\"%s\":", field);
	at = strstr(p.json.text, key);
	return at ? strtoull(at + strlen(key), NULL, 10) : ~0ULL;
}

static void writes_under_way_are_counted(void)
{
	begin();
	sent(BACKING, 5);
	done(BACKING, 2);
	CHECK_EQ(record("inflight", NS_PER_MS), 3);
	CHECK_EQ(record("bytes", NS_PER_MS), 3 * PIECE);
	done(BACKING, 3);
	CHECK_EQ(record("inflight", NS_PER_MS), 0);
}

static void writes_from_before_tracking_are_forgotten_once_they_are_done(void)
{
	begin();
	kernel_in_flight = 64;
	done(BACKING, 64);
	CHECK_EQ(record("inflight", NS_PER_MS), 0);
	CHECK_EQ(record("done_ios", NS_PER_MS), 64);
	sent(BACKING, 10);
	CHECK_EQ(record("inflight", NS_PER_MS), 10);
	CHECK_EQ(record("bytes", NS_PER_MS), 10 * PIECE);
	/* The programs compare with the same number, to tell at once when nothing is left. */
	CHECK_EQ(shared.vol[0].destage_unseen, 64);
	done(BACKING, 10);
	CHECK_EQ(record("inflight", NS_PER_MS), 0);
}

static void reads_of_the_cache_device_from_before_are_forgotten_too(void)
{
	begin();
	done(CACHE, 30);
	CHECK_EQ(record("reads", NS_PER_MS), 0);
	sent(CACHE, 4);
	CHECK_EQ(record("reads", NS_PER_MS), 4);
}

static void an_end_that_was_never_seen_goes_when_nothing_moves(void)
{
	begin();
	sent(BACKING, 7);
	done(BACKING, 4);
	CHECK_EQ(record("inflight", NS_PER_MS), 3);
	CHECK_EQ(record("inflight", NS_PER_S - NS_PER_MS), 3);
	CHECK_EQ(record("inflight", 2 * NS_PER_MS), 0);
	CHECK_EQ(record("bytes", NS_PER_MS), 0);
	sent(BACKING, 2);
	CHECK_EQ(record("inflight", NS_PER_MS), 2);
}

static void what_the_kernel_still_works_on_stays(void)
{
	begin();
	sent(BACKING, 3);
	kernel_in_flight = 1;
	CHECK_EQ(record("inflight", NS_PER_MS), 3);
	CHECK_EQ(record("inflight", 10 * NS_PER_S), 3);
	kernel_answers = false;
	kernel_in_flight = 0;
	CHECK_EQ(record("inflight", 10 * NS_PER_S), 3);
}

static void a_queue_that_moves_is_not_corrected(void)
{
	begin();
	sent(BACKING, 3);
	for (int i = 0; i < 10; i++) {
		sent(BACKING, 1);
		done(BACKING, 1);
		CHECK_EQ(record("inflight", NS_PER_S), 3);
	}
}

static void a_tick_corrects_without_any_pace(void)
{
	begin();
	v->pace_ns = 0;
	done(BACKING, 64);
	resync_destage(&p, v, now);
	v->pace_ns = 20 * NS_PER_MS;
	sent(BACKING, 1);
	CHECK_EQ(record("inflight", NS_PER_MS), 1);
}

static void a_volume_whose_destage_cannot_be_told_is_not_paced(void)
{
	struct command cmd = { .verb = VERB_PACE, .ns = 20 * NS_PER_MS };
	const char *complaint;

	begin();
	v->pace_ns = 0;
	strcpy(v->class_missing, "the kernel hides it");
	complaint = set_pace(&p, v, &cmd);
	CHECK(complaint && strstr(complaint, "the kernel hides it"));
	CHECK(!v->pace_ns && !shared.vol[0].paced);
	cmd.ns = 0;
	CHECK(!set_pace(&p, v, &cmd));
	cmd.ns = 20 * NS_PER_MS;
	v->class_missing[0] = '\0';
	CHECK(!set_pace(&p, v, &cmd));
	CHECK(v->pace_ns && shared.vol[0].paced);
}

int main(void)
{
	RUN(writes_under_way_are_counted);
	RUN(writes_from_before_tracking_are_forgotten_once_they_are_done);
	RUN(reads_of_the_cache_device_from_before_are_forgotten_too);
	RUN(an_end_that_was_never_seen_goes_when_nothing_moves);
	RUN(what_the_kernel_still_works_on_stays);
	RUN(a_queue_that_moves_is_not_corrected);
	RUN(a_tick_corrects_without_any_pace);
	RUN(a_volume_whose_destage_cannot_be_told_is_not_paced);
	return check_done();
}
