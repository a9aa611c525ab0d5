// SPDX-License-Identifier: GPL-2.0-only
#include "tick_record.h"

#include "counters.h"
#include "records.h"
#include "sysfs.h"

static uint64_t total(const __u64 *values, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += values[i];
	return sum;
}

static void keep_highest(uint64_t *highest, int64_t value)
{
	if (value > 0 && (uint64_t)value > *highest)
		*highest = value;
}

/* A request that must not wait and is refused is sent again: that is one request, not two. */
static void put_direction(struct json *j, struct volume *v, const struct eb_vol_cpu *c,
			  const char *key, int dir)
{
	const struct eb_arrivals *a = &c->arrivals[dir];

	keep_highest(&v->foreground_ios[dir], a->ios - a->refused_ios);
	keep_highest(&v->foreground_bytes[dir],
		     total(a->runs, HIST_LOG2_BUCKETS) - a->refused_bytes);
	json_open(j, key);
	json_u64(j, "ios", v->foreground_ios[dir]);
	json_u64(j, "bytes", v->foreground_bytes[dir]);
	json_u64(j, "sync", a->sync);
	json_u64(j, "meta", a->meta);
	if (dir == EB_READ)
		json_u64(j, "ahead", a->ahead);
	json_close(j);
}

static void put_foreground(struct json *j, struct volume *v, const struct eb_vol_cpu *c)
{
	json_open(j, "fg");
	put_direction(j, v, c, "read", EB_READ);
	put_direction(j, v, c, "write", EB_WRITE);
	json_u64(j, "flush", c->flush);
	json_u64(j, "discard", c->discard);
	json_close(j);
}

static void put_state(struct probe *p, struct volume *v)
{
	int64_t n[EB_DIRS];
	uint64_t kernel[EB_DIRS] = { 0, 0 };
	bool counted;

	volume_in_flight(p, v, n);
	/* On a plain disk bytes are counted; the kernel tells its requests, if it counts them. */
	counted = v->kind == KIND_DISK && block_in_flight(v->dev, kernel);
	for (int dir = 0; v->kind == KIND_DISK && dir < EB_DIRS; dir++)
		n[dir] = counted ? (int64_t)kernel[dir] : n[dir] > 0;
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
	json_array(j, "read", c->arrivals[EB_READ].runs, HIST_LOG2_BUCKETS);
	json_array(j, "write", c->arrivals[EB_WRITE].runs, HIST_LOG2_BUCKETS);
	json_close(j);
	json_array(j, "gaps", c->gaps, HIST_LOG2_BUCKETS);
	json_array(j, "gaps_ns", c->gaps_ns, HIST_LOG2_BUCKETS);
}

static void put_flow(struct json *j, const struct eb_flow *flow, const char *key)
{
	json_open(j, key);
	json_u64(j, "ios", flow->ios);
	json_u64(j, "bytes", flow->bytes);
	json_array(j, "lat", flow->lat, HIST_LAT_BUCKETS);
	json_close(j);
}

static void put_paths(struct json *j, const struct eb_vol_cpu *c)
{
	json_open(j, "path");
	json_open(j, "read");
	put_flow(j, &c->path[EB_READ_HIT], "hit");
	put_flow(j, &c->path[EB_READ_MISS], "miss");
	put_flow(j, &c->path[EB_READ_BYPASS], "bypass");
	json_close(j);
	json_open(j, "write");
	put_flow(j, &c->path[EB_WRITE_BACK], "writeback");
	put_flow(j, &c->path[EB_WRITE_THROUGH], "writethrough");
	put_flow(j, &c->path[EB_WRITE_BYPASS], "bypass");
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

static void put_bypass(struct json *j, struct volume *v, const struct eb_vol_cpu *c)
{
	/* The reason is known when a request starts, the path of a read when it ends. The
	 * difference dips in between, so the highest value so far is the count.
	 */
	keep_highest(&v->other_ios, c->path[EB_READ_BYPASS].ios + c->path[EB_WRITE_BYPASS].ios -
					    c->reason_ios[EB_SEQUENTIAL] -
					    c->reason_ios[EB_CONGESTED]);
	keep_highest(&v->other_bytes,
		     c->path[EB_READ_BYPASS].bytes + c->path[EB_WRITE_BYPASS].bytes -
			     c->reason_bytes[EB_SEQUENTIAL] - c->reason_bytes[EB_CONGESTED]);
	json_open(j, "bypass");
	put_reason(j, "sequential", c->reason_ios[EB_SEQUENTIAL], c->reason_bytes[EB_SEQUENTIAL]);
	put_reason(j, "congested", c->reason_ios[EB_CONGESTED], c->reason_bytes[EB_CONGESTED]);
	put_reason(j, "other", v->other_ios, v->other_bytes);
	json_close(j);
}

/* What is in flight at devices together. */
struct depth {
	uint64_t ios[EB_DIRS];
	bool unknown; /* the kernel does not count it for one of them */
};

static void put_device(struct json *j, const char *key, const struct eb_dev_cpu *d,
		       const struct depth *depth)
{
	static const char *const dirs[] = { "read", "write" };

	json_open(j, key);
	for (int dir = 0; dir < EB_DIRS; dir++) {
		json_open(j, dirs[dir]);
		put_flow(j, &d->flow[dir * EB_CLASSES + EB_FG], "fg");
		put_flow(j, &d->flow[dir * EB_CLASSES + EB_BG], "bg");
		json_close(j);
	}
	if (!depth->unknown) {
		json_open(j, "depth");
		json_u64(j, "read", depth->ios[EB_READ]);
		json_u64(j, "write", depth->ios[EB_WRITE]);
		json_close(j);
	}
	json_close(j);
}

static void add_device(struct probe *p, int device, struct eb_dev_cpu *sum, struct depth *depth)
{
	uint64_t one[EB_DIRS] = { 0, 0 };
	struct eb_dev_cpu d;

	sum_device(p, device, &d);
	p->warning[WARN_CHAIN].n += d.lost_chain;
	for (size_t i = 0; i < sizeof(d) / sizeof(__u64); i++)
		((__u64 *)sum)[i] += ((__u64 *)&d)[i];
	if (!block_in_flight(p->device[device].dev, one))
		depth->unknown = true;
	depth->ios[EB_READ] += one[EB_READ];
	depth->ios[EB_WRITE] += one[EB_WRITE];
}

static void put_devices(struct probe *p, struct volume *v)
{
	struct eb_dev_cpu cache = { 0 }, backing = { 0 };
	struct destage destage = { 0 };
	struct depth cache_depth = { 0 }, backing_depth = { 0 };

	for (size_t i = 0; i < v->caches; i++)
		add_device(p, v->cache[i], &cache, &cache_depth);
	if (v->backing >= 0) {
		add_device(p, v->backing, &backing, &backing_depth);
		read_destage(p, v->backing, &destage);
	}
	json_open(&p->json, "dev");
	put_device(&p->json, "cache", &cache, &cache_depth);
	put_device(&p->json, "backing", &backing, &backing_depth);
	json_close(&p->json);
	json_open(&p->json, "destage");
	json_u64(&p->json, "queued_ios", backing.queued_ios);
	json_u64(&p->json, "queued_bytes", backing.queued_bytes);
	json_u64(&p->json, "done_ios", backing.copied[EB_DESTAGE].ios);
	json_u64(&p->json, "done_bytes", backing.copied[EB_DESTAGE].bytes);
	json_u64(&p->json, "inflight_ios", destage.ios);
	json_u64(&p->json, "inflight_bytes", destage.bytes);
	json_close(&p->json);
	json_open(&p->json, "promote");
	json_u64(&p->json, "done_ios", backing.copied[EB_PROMOTION].ios);
	json_u64(&p->json, "done_bytes", backing.copied[EB_PROMOTION].bytes);
	json_close(&p->json);
}

static void put_lost(struct probe *p, const struct volume *v, const struct eb_vol_cpu *c)
{
	json_open(&p->json, "lost");
	json_u64(&p->json, "ring", c->lost_ring);
	json_u64(&p->json, "unmatched", c->lost_unmatched);
	json_u64(&p->json, "streams", c->lost_streams);
	json_u64(&p->json, "table", c->lost_table);
	json_u64(&p->json, "reuse", c->lost_reuse + v->lost_reuse);
	json_u64(&p->json, "missed", p->misses);
	json_close(&p->json);
	p->warning[WARN_RING_LOST].n += c->lost_ring;
	p->warning[WARN_UNMATCHED].n += c->lost_unmatched;
	p->warning[WARN_STREAMS].n += c->lost_streams;
	p->warning[WARN_TABLE_FULL].n += c->lost_table;
}

void write_tick(struct probe *p, struct volume *v, const struct eb_vol_cpu *c, uint64_t now)
{
	json_begin(&p->json, "tick", now);
	json_str(&p->json, "vol", v->name);
	put_foreground(&p->json, v, c);
	put_state(p, v);
	put_patterns(&p->json, c);
	/* Unknown is not zero. */
	if (!p->inherits || !kind_is_dm(v->kind)) {
		put_paths(&p->json, c);
		put_bypass(&p->json, v, c);
	}
	put_devices(p, v);
	put_lost(p, v, c);
	write_record(p);
}
