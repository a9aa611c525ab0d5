// SPDX-License-Identifier: GPL-2.0-only
/* The periodic record of a volume: every counter, cumulative. */
#include "probe.h"

#include <string.h>

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

static uint64_t total(const __u64 *values, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += values[i];
	return sum;
}

static void put_direction(struct json *j, const struct eb_vol_cpu *c, const char *key, int dir)
{
	json_open(j, key);
	json_u64(j, "ios", c->ios[dir]);
	json_u64(j, "bytes", total(c->runs[dir], HIST_LOG2_BUCKETS));
	json_u64(j, "sync", c->sync[dir]);
	json_u64(j, "meta", c->meta[dir]);
	if (dir == EB_READ)
		json_u64(j, "ahead", c->ahead);
	json_close(j);
}

static void put_foreground(struct json *j, const struct eb_vol_cpu *c)
{
	json_open(j, "fg");
	put_direction(j, c, "read", EB_READ);
	put_direction(j, c, "write", EB_WRITE);
	json_u64(j, "flush", c->flush);
	json_u64(j, "discard", c->discard);
	json_close(j);
}

static void put_state(struct probe *p, struct volume *v)
{
	int64_t n[EB_DIRS];
	uint64_t kernel[EB_DIRS] = {0, 0};

	volume_in_flight(p, v, n);
	/* A plain disk is followed in bytes; the kernel counts its requests. */
	if (v->kind == KIND_DISK) {
		block_in_flight(v->dev, kernel);
		n[EB_READ] = kernel[EB_READ];
		n[EB_WRITE] = kernel[EB_WRITE];
	}
	json_open(&p->json, "inflight");
	json_u64(&p->json, "read", n[EB_READ] > 0 ? n[EB_READ] : 0);
	json_u64(&p->json, "write", n[EB_WRITE] > 0 ? n[EB_WRITE] : 0);
	json_close(&p->json);
	json_str(&p->json, "state", v->state == STATE_IDLE ? "idle" : "busy");
	json_u64(&p->json, "last_ns", volume_shared(p, v)->last_ns);
}

static void put_patterns(struct json *j, const struct eb_vol_cpu *c)
{
	json_open(j, "runs");
	json_array(j, "read", c->runs[EB_READ], HIST_LOG2_BUCKETS);
	json_array(j, "write", c->runs[EB_WRITE], HIST_LOG2_BUCKETS);
	json_close(j);
	json_array(j, "gaps", c->gaps, HIST_LOG2_BUCKETS);
	json_array(j, "gaps_ns", c->gaps_ns, HIST_LOG2_BUCKETS);
}

static void put_path(struct json *j, const struct eb_vol_cpu *c, const char *key, int path)
{
	json_open(j, key);
	json_u64(j, "ios", c->path_ios[path]);
	json_u64(j, "bytes", c->path_bytes[path]);
	json_array(j, "lat", c->path_lat[path], HIST_LAT_BUCKETS);
	json_close(j);
}

static void put_paths(struct json *j, const struct eb_vol_cpu *c)
{
	json_open(j, "path");
	json_open(j, "read");
	put_path(j, c, "hit", EB_READ_HIT);
	put_path(j, c, "miss", EB_READ_MISS);
	put_path(j, c, "bypass", EB_READ_BYPASS);
	json_close(j);
	json_open(j, "write");
	put_path(j, c, "writeback", EB_WRITE_BACK);
	put_path(j, c, "writethrough", EB_WRITE_THROUGH);
	put_path(j, c, "bypass", EB_WRITE_BYPASS);
	json_close(j);
	json_close(j);
}

static void put_reason(struct json *j, const char *key, uint64_t ios, uint64_t bytes)
{
	json_open(j, key);
	json_u64(j, "ios", ios);
	json_u64(j, "bytes", bytes);
	json_close(j);
}

static void raise(uint64_t *highest, int64_t value)
{
	if (value > 0 && (uint64_t)value > *highest)
		*highest = value;
}

static void put_bypass(struct json *j, struct volume *v, const struct eb_vol_cpu *c)
{
	/* A reason is told when the request starts, a read's path when it ends: the
	 * difference dips meanwhile, so the highest value seen is the count. */
	raise(&v->other_ios, c->path_ios[EB_READ_BYPASS] + c->path_ios[EB_WRITE_BYPASS] -
				     c->reason_ios[EB_SEQUENTIAL] - c->reason_ios[EB_CONGESTED]);
	raise(&v->other_bytes, c->path_bytes[EB_READ_BYPASS] + c->path_bytes[EB_WRITE_BYPASS] -
				       c->reason_bytes[EB_SEQUENTIAL] -
				       c->reason_bytes[EB_CONGESTED]);
	json_open(j, "bypass");
	put_reason(j, "sequential", c->reason_ios[EB_SEQUENTIAL], c->reason_bytes[EB_SEQUENTIAL]);
	put_reason(j, "congested", c->reason_ios[EB_CONGESTED], c->reason_bytes[EB_CONGESTED]);
	put_reason(j, "other", v->other_ios, v->other_bytes);
	json_close(j);
}

static void put_class(struct json *j, const struct eb_dev_cpu *d, const char *key, int dir, int cls)
{
	json_open(j, key);
	json_u64(j, "ios", d->ios[dir][cls]);
	json_u64(j, "bytes", d->bytes[dir][cls]);
	json_array(j, "lat", d->lat[dir][cls], HIST_LAT_BUCKETS);
	json_close(j);
}

static void put_device(struct json *j, const char *key, const struct eb_dev_cpu *d,
		       const uint64_t depth[EB_DIRS])
{
	static const char *const dirs[] = {"read", "write"};

	json_open(j, key);
	for (int dir = 0; dir < EB_DIRS; dir++) {
		json_open(j, dirs[dir]);
		put_class(j, d, "fg", dir, EB_FG);
		put_class(j, d, "bg", dir, EB_BG);
		json_close(j);
	}
	json_open(j, "depth");
	json_u64(j, "read", depth[EB_READ]);
	json_u64(j, "write", depth[EB_WRITE]);
	json_close(j);
	json_close(j);
}

static void add_device(struct probe *p, int device, struct eb_dev_cpu *sum, uint64_t depth[EB_DIRS])
{
	uint64_t one[EB_DIRS] = {0, 0};
	struct eb_dev_cpu d;

	sum_device(p, device, &d);
	for (size_t i = 0; i < sizeof(d) / sizeof(__u64); i++)
		((__u64 *)sum)[i] += ((__u64 *)&d)[i];
	block_in_flight(p->device[device].dev, one);
	depth[EB_READ] += one[EB_READ];
	depth[EB_WRITE] += one[EB_WRITE];
}

static void put_devices(struct probe *p, struct volume *v)
{
	struct eb_dev_cpu cache = {0}, backing = {0};
	uint64_t cache_depth[EB_DIRS] = {0, 0}, backing_depth[EB_DIRS] = {0, 0};

	for (size_t i = 0; i < v->caches; i++)
		add_device(p, v->cache[i], &cache, cache_depth);
	if (v->backing >= 0)
		add_device(p, v->backing, &backing, backing_depth);
	json_open(&p->json, "dev");
	put_device(&p->json, "cache", &cache, cache_depth);
	put_device(&p->json, "backing", &backing, backing_depth);
	json_close(&p->json);
	json_open(&p->json, "destage");
	json_u64(&p->json, "queued_ios", backing.destage_queued_ios);
	json_u64(&p->json, "queued_bytes", backing.destage_queued_bytes);
	json_u64(&p->json, "done_ios", backing.destage_done_ios);
	json_u64(&p->json, "done_bytes", backing.destage_done_bytes);
	json_close(&p->json);
}

static void put_lost(struct probe *p, const struct eb_vol_cpu *c)
{
	json_open(&p->json, "lost");
	json_u64(&p->json, "ring", c->lost_ring);
	json_u64(&p->json, "unmatched", c->lost_unmatched);
	json_u64(&p->json, "streams", c->lost_streams);
	json_u64(&p->json, "table", c->lost_table);
	json_close(&p->json);
}

void say_tick(struct probe *p, struct volume *v, uint64_t now)
{
	struct eb_vol_cpu c;

	sum_volume(p, v, &c);
	json_begin(&p->json, "tick", now);
	json_str(&p->json, "vol", v->name);
	put_foreground(&p->json, &c);
	put_state(p, v);
	put_patterns(&p->json, &c);
	put_paths(&p->json, &c);
	put_bypass(&p->json, v, &c);
	put_devices(p, v);
	put_lost(p, &c);
	say(p);
}
