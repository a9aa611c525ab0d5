/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * bcache's tracepoints: the path of each request, its latency at the volume, the reason of a
 * bypass. At all of them the bio already points to the backing device, which is in the dev_t table.
 */
#include "attribution.bpf.h"
#include "heat.bpf.h"
#include "join.bpf.h"

/*
 * The entry of the bio's backing device; NULL if it does not back a tracked volume, and for a read
 * that only warms the cache.
 */
static __always_inline struct eb_dev *backing_entry(struct bio *bio, bool raw)
{
	struct eb_dev *e;

	/* The verifier demands it for tracepoints of modules (in v6.13). */
	if (!bio)
		return NULL;
	e = find_dev(dev_of(bio, raw));
	return e && (e->roles & EB_IS_BACKING) && !is_warming(bio, raw) ? e : NULL;
}

static __always_inline void count_path(struct eb_flow *flow, __u32 bytes)
{
	flow->ios++;
	flow->bytes += bytes;
}

static __always_inline void count_end(struct eb_vol_cpu *c, struct eb_dev *e, __u32 dir,
				      __u64 now_ns)
{
	c->done[dir]++;
	touch(e->backs, now_ns);
}

/* The backing device serves users. The bio's sector is there, the volume begins behind a
 * superblock. */
static __always_inline void count_at_backing(struct eb_dev *e, struct bio *bio, __u64 kind,
					     bool raw)
{
	/* A kernel without BTF of its modules has no atomic operations either. */
	count_miss(e->backs, sector_of(bio, raw) - volume_of(e->backs)->data_sector, kind, !raw);
	attribute_miss(bio, e->backs, kind == HEAT_WRITE ? EB_WRITE : EB_READ, raw);
}

/* A full set has pushed a request out: a write is counted here, since its end will not find it. */
static __always_inline void count_lost(struct eb_vol_cpu *c, __u64 lost, __u64 bytes)
{
	__u32 path = lost & JOIN_PATH_MASK;

	c->lost_table++;
	if (path >= EB_WRITE_BACK && path < EB_PATHS)
		count_path(&c->path[path], bytes);
}

static __always_inline void count_pushed_out(struct eb_dev *e, __u64 lost, __u64 bytes)
{
	struct eb_cpu *cpu = this_cpu();

	if (cpu)
		count_lost(vol_counters(cpu, e->backs), lost, bytes);
}

/* As in count_at_backing(), no atomic operations where the tracepoints are raw. */
static __always_inline struct join *join_of(struct eb_vol_cpu *c, __u64 id, __u32 path, bool raw)
{
	unsigned long long lost = 0;
	struct join *j = join_enter(&joins, id, path, !raw, &lost);

	if (UNLIKELY(lost)) {
		count_lost(c, lost, j->bytes);
		j->start_ns = 0;
	}
	return j;
}

/* When a bio arrived, for a kernel that does not stamp it. */
static __always_inline __u64 arrived_ns(const struct eb_vol_cpu *c, __u64 id)
{
	return c->arrived_id == id ? c->arrived_ns : bpf_ktime_get_ns();
}

/* Loaded only where the kernel does not stamp bios: the join keeps when the request arrived. */
static __always_inline void request_start(struct bio *bio, bool raw)
{
	struct eb_dev *e = backing_entry(bio, raw);
	struct eb_vol_cpu *c;
	struct eb_cpu *cpu;
	struct join *j;
	__u64 id;

	if (!e)
		return;
	cpu = this_cpu();
	if (!cpu)
		return;
	c = vol_counters(cpu, e->backs);
	id = request_id(bio, opf_of(bio, raw), raw);
	j = join_of(c, id, JOIN_BEGUN, raw);
	j->start_ns = arrived_ns(c, id_of(bio, raw));
}

/*
 * A read ends right after this, in the same context, unless it is a miss, whose data a worker may
 * have to copy first. So only a miss is joined with its end, where the kernel stamps bios.
 */
static __always_inline void read_path(struct bio *bio, bool hit, bool bypass, bool raw)
{
	struct eb_dev *e = backing_entry(bio, raw);
	struct eb_flow *flow;
	struct eb_vol_cpu *c;
	struct eb_cpu *cpu;
	__u32 path, bytes;
	__u64 now_ns;

	if (!e)
		return;
	cpu = this_cpu();
	if (!cpu)
		return;
	c = vol_counters(cpu, e->backs);
	path = bypass ? EB_READ_BYPASS : hit ? EB_READ_HIT : EB_READ_MISS;
	flow = &c->path[path];
	bytes = bytes_of(bio, raw);
	count_path(flow, bytes);
	if (path == EB_READ_MISS)
		count_at_backing(e, bio, read_kind(bio, bytes, raw), raw);
	if (!BIO_STAMPED || path == EB_READ_MISS) {
		join_of(c, id_of(bio, raw), path, raw);
		return;
	}
	now_ns = bpf_ktime_get_ns();
	count_latency(flow, stamp_age_ns(stamp_of(bio, raw), now_ns));
	count_end(c, e, EB_READ, now_ns);
}

/*
 * Fires for fills (op READ) and discards too, which are not writes of data. The request is counted
 * when it ends, so that nothing has to be looked up here.
 */
static __always_inline void write_path(struct bio *bio, bool writeback, bool bypass, bool raw)
{
	unsigned long long lost = 0;
	struct eb_dev *e;
	struct join *j;
	__u32 path;

	/* The verifier demands it for tracepoints of modules (in v6.13). */
	if (!bio || (opf_of(bio, raw) & EB_OP_MASK) != REQ_OP_WRITE)
		return;
	path = bypass ? EB_WRITE_BYPASS : writeback ? EB_WRITE_BACK : EB_WRITE_THROUGH;
	j = join_enter(&joins, data_id(bio, raw), path, !raw, &lost);
	if (UNLIKELY(lost || path != EB_WRITE_BACK)) {
		e = backing_entry(bio, raw);
		if (e && lost)
			count_pushed_out(e, lost, j->bytes);
		/* It was that of the request that was pushed out. */
		if (lost)
			j->start_ns = 0;
		if (e && path != EB_WRITE_BACK)
			count_at_backing(e, bio, HEAT_WRITE, raw);
	}
	j->bytes = bytes_of(bio, raw);
}

/*
 * The end of a write, and of a read that was not counted by read_path(). Where bios are not
 * stamped, it has no latency if its volume was not tracked yet when it began: then `start_ns` is 0.
 */
static __always_inline void count_joined(struct bio *bio, struct eb_flow *flow, __u64 start_ns,
					 __u64 now_ns, bool raw)
{
	if (BIO_STAMPED)
		count_latency(flow, stamp_age_ns(stamp_of(bio, raw), now_ns));
	else if (start_ns)
		count_latency(flow, now_ns - start_ns);
}

static __always_inline void request_end(struct bio *bio, bool raw)
{
	__u64 now_ns, start_ns = 0, bytes = 0;
	__u32 opf, path = EB_PATHS;
	struct eb_vol_cpu *c;
	struct eb_cpu *cpu;
	struct eb_dev *e;
	struct join *j;

	/* The verifier demands it for tracepoints of modules (in v6.13). */
	if (!bio)
		return;
	opf = opf_of(bio, raw);
	j = join_find(&joins, request_id(bio, opf, raw));
	/* Its end was counted by read_path(), or its volume is not tracked. */
	if (BIO_STAMPED && !j && (opf & EB_OP_MASK) == REQ_OP_READ)
		return;
	if (j) {
		path = j->id & JOIN_PATH_MASK;
		start_ns = j->start_ns;
		bytes = j->bytes;
		/* The next request in this place may be one whose beginning is not seen. */
		j->start_ns = 0;
		j->id = 0;
	}
	e = backing_entry(bio, raw);
	if (!e)
		return;
	cpu = this_cpu();
	if (!cpu)
		return;
	c = vol_counters(cpu, e->backs);
	now_ns = bpf_ktime_get_ns();
	if (path < EB_PATHS) {
		if (path >= EB_WRITE_BACK)
			count_path(&c->path[path], bytes);
		count_joined(bio, &c->path[path], start_ns, now_ns, raw);
	} else if (!(opf & flags.preflush) && !is_discard(opf & EB_OP_MASK)) {
		count_unmatched(c, e->backs, opf & 1);
	}
	count_end(c, e, opf & 1, now_ns);
}

static __always_inline void count_reason(struct bio *bio, __u32 reason, bool raw)
{
	struct eb_dev *e = backing_entry(bio, raw);
	struct eb_vol_cpu *c;
	struct eb_cpu *cpu;

	if (!e)
		return;
	cpu = this_cpu();
	if (!cpu)
		return;
	c = vol_counters(cpu, e->backs);
	c->reason_ios[reason]++;
	c->reason_bytes[reason] += bytes_of(bio, raw);
}

#define BIO(argument) ((struct bio *)(argument))

PROGRAM(bcache_request_start, "bcache_request_start", request_start(bio, false),
	struct bcache_device *d, struct bio *bio)
PROGRAM_RAW(bcache_request_start, "bcache_request_start", request_start(BIO(arg[1]), true))
PROGRAM(bcache_read, "bcache_read", read_path(bio, hit, bypass, false), struct bio *bio, bool hit,
	bool bypass)
PROGRAM_RAW(bcache_read, "bcache_read", read_path(BIO(arg[0]), (__u8)arg[1], (__u8)arg[2], true))
PROGRAM(bcache_write, "bcache_write", write_path(bio, writeback, bypass, false),
	struct cache_set *set, __u64 inode, struct bio *bio, bool writeback, bool bypass)
PROGRAM_RAW(bcache_write, "bcache_write", write_path(BIO(arg[2]), (__u8)arg[3], (__u8)arg[4], true))
PROGRAM(bcache_request_end, "bcache_request_end", request_end(bio, false), struct bcache_device *d,
	struct bio *bio)
PROGRAM_RAW(bcache_request_end, "bcache_request_end", request_end(BIO(arg[1]), true))
PROGRAM(bcache_bypass_sequential, "bcache_bypass_sequential",
	count_reason(bio, EB_SEQUENTIAL, false), struct bio *bio)
PROGRAM_RAW(bcache_bypass_sequential, "bcache_bypass_sequential",
	    count_reason(BIO(arg[0]), EB_SEQUENTIAL, true))
PROGRAM(bcache_bypass_congested, "bcache_bypass_congested", count_reason(bio, EB_CONGESTED, false),
	struct bio *bio)
PROGRAM_RAW(bcache_bypass_congested, "bcache_bypass_congested",
	    count_reason(BIO(arg[0]), EB_CONGESTED, true))

char LICENSE[] SEC("license") = "GPL";
