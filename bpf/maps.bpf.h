/* SPDX-License-Identifier: GPL-2.0-only */
/* Maps and constants that all program objects share, and how to reach them. */
#ifndef EBBGATE_MAPS_BPF_H
#define EBBGATE_MAPS_BPF_H

#include "record.h"
#include "idle.h"

/* bcc has no global data: there bcc/compat.bpf.h gives these names to maps that are made before. */
#ifndef EBBGATE_BCC
/* Set by the loader before load. */
const volatile __u32 ncpu = 1;
const volatile struct eb_flags flags = {};

/*
 * Counters by CPU, mapped into the loader's memory so that it reads them without a system call.
 * Before load it sets the number of entries: ncpu.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct eb_cpu);
} counters SEC(".maps");

struct eb_shared shared SEC(".data.shared");
#endif

/* The entry of a dev_t, or NULL. A device that is not tracked costs one read. */
static __always_inline struct eb_dev *find_dev(__u32 dev)
{
	__u32 i = (dev * EB_DEV_HASH) >> 24;

	UNROLL
	for (int probe = 0; probe < EB_DEV_PROBES; probe++) {
		struct eb_dev *e = &shared.dev[(i + probe) & (EB_DEV_SLOTS - 1)];

		if (e->dev == dev)
			return e;
		if (!e->dev)
			return NULL;
	}
	return NULL;
}

static __always_inline struct eb_vol *volume_of(__u32 volume)
{
	return &shared.vol[volume & (EB_VOLUMES - 1)];
}

static __always_inline struct eb_cpu *counters_of(__u32 cpu)
{
	return bpf_map_lookup_elem(&counters, &cpu);
}

/* The counters of this CPU; never NULL, which only the verifier does not know. */
static __always_inline struct eb_cpu *this_cpu(void)
{
	return counters_of(bpf_get_smp_processor_id());
}

static __always_inline struct eb_vol_cpu *vol_counters(struct eb_cpu *cpu, __u32 volume)
{
	struct eb_vol_cpu *c = &cpu->volume[volume & (EB_VOLUMES - 1)];

	OPAQUE(c);
	return c;
}

static __always_inline struct eb_dev_cpu *dev_counters(struct eb_cpu *cpu, __u32 device)
{
	struct eb_dev_cpu *c = &cpu->device[device & (EB_DEVICES - 1)];

	OPAQUE(c);
	return c;
}

#ifndef EBBGATE_BCC
/*
 * The identity of a bio: its address as a number. The verifier refuses to hash a kernel pointer but
 * allows its negation. It is aligned to 8 bytes, so the low bits are free.
 */
static __always_inline __u64 bio_id(struct bio *bio)
{
	__u64 id = (__u64)bio;

	asm volatile("%0 = -%0" : "+r"(id));
	return -id;
}

/*
 * Without BTF of the module its tracepoints are raw: the verifier does not know the type of their
 * arguments, and a bio is read through a helper. Both forms are inlined with a constant `raw`.
 */
static __always_inline __u32 opf_of(struct bio *bio, bool raw)
{
	return raw ? BPF_CORE_READ(bio, bi_opf) : bio->bi_opf;
}

static __always_inline __u32 bytes_of(struct bio *bio, bool raw)
{
	return raw ? BPF_CORE_READ(bio, bi_iter.bi_size) : bio->bi_iter.bi_size;
}

static __always_inline __u64 sector_of(struct bio *bio, bool raw)
{
	return raw ? BPF_CORE_READ(bio, bi_iter.bi_sector) : bio->bi_iter.bi_sector;
}

static __always_inline __u64 stamp_of(struct bio *bio, bool raw)
{
	return raw ? BPF_CORE_READ((struct bio___stamped *)bio, bi_issue.value) : bio_stamp(bio);
}

static __always_inline __u16 ioprio_of(struct bio *bio, bool raw)
{
	return raw ? BPF_CORE_READ(bio, bi_ioprio) : bio->bi_ioprio;
}

/* No pointer may be subtracted from a number. */
static __always_inline __u64 id_of(struct bio *bio, bool raw)
{
	return raw ? (__u64)bio : bio_id(bio);
}

/* Where the data of a bio begins in its segment. */
static __always_inline __u32 data_offset(struct bio *bio, bool raw)
{
	struct bio___offset *new = (struct bio___offset *)bio;
	__u32 offset;

	if (HAS_BVEC_DONE) {
		offset = raw ? BPF_CORE_READ(bio, bi_iter.bi_bvec_done) : bio->bi_iter.bi_bvec_done;
		/* Or the compiler makes one read of both, whose place is computed each time. */
		OPAQUE(offset);
		return offset;
	}
	return raw ? BPF_CORE_READ(new, bi_iter.bi_offset) : new->bi_iter.bi_offset;
}

/*
 * The identity of what a bio writes: where its data begins. bcache_write shows a clone of the bio,
 * which has the same data; bios without data are told apart by their addresses.
 */
static __always_inline __u64 data_id(struct bio *bio, bool raw)
{
	struct bio_vec *data = raw ? BPF_CORE_READ(bio, bi_io_vec) : bio->bi_io_vec;
	__u32 index = raw ? BPF_CORE_READ(bio, bi_iter.bi_idx) : bio->bi_iter.bi_idx;
	__u32 offset = data_offset(bio, raw);
	__u64 id = (__u64)data;

	if (!data)
		return id_of(bio, raw);
	if (!raw) {
		asm volatile("%0 = -%0" : "+r"(id));
		id = -id;
	}
	return id + index * 16 + ((__u64)offset << 32);
}

static __always_inline __u32 dev_of(struct bio *bio, bool raw)
{
	struct gendisk *disk;

	if (!raw)
		return bio_dev(bio);
	if (BIO_HAS_BDEV)
		return BPF_CORE_READ(bio, bi_bdev, bd_dev);
	disk = BPF_CORE_READ((struct bio___disk *)bio, bi_disk);
	return BPF_CORE_READ(disk, major) << 20 | BPF_CORE_READ(disk, first_minor);
}
#endif

static __always_inline __u64 request_id(struct bio *bio, __u32 opf, bool raw)
{
	return opf & 1 ? data_id(bio, raw) : id_of(bio, raw);
}

/* A read that warms the cache. At the volume it keeps its priority from its arrival to its end. */
static __always_inline bool is_warming(struct bio *bio, bool raw)
{
	return ioprio_of(bio, raw) == EB_WARM_IOPRIO;
}

/* What is read of a bio once: the kernel checks the address at each access. */
struct arrival {
	__u64 stamp;
	__u32 opf;
	__u32 bytes;
};

/* Bounds a bucket for the verifier; the compiler may prove the bound and drop the check. */
static __always_inline __u64 bounded(__u64 bucket, __u32 buckets)
{
	OPAQUE(bucket);
	return bucket < buckets ? bucket : buckets - 1;
}

static __always_inline void count_latency(struct eb_flow *flow, __u64 ns)
{
	flow->lat[bounded(hist_lat_bucket(hist_us(ns)), HIST_LAT_BUCKETS)]++;
}

/* The front part of a bio that was split: it ends, but only the whole bio was queued. */
static __always_inline bool is_part(struct bio *bio)
{
	return (__u64)bio->bi_end_io == shared.endio[EB_END_CHAIN];
}

/*
 * The end of a request whose path is not known. It is lost unless it was sent before the volume was
 * tracked. Two CPUs may take one of those together, which leaves one too many.
 */
static __always_inline void count_unmatched(struct eb_vol_cpu *c, __u32 volume, __u32 dir)
{
	__s32 *earlier = &volume_of(volume)->earlier[dir & 1];

	if (*earlier > 0)
		--*earlier;
	else
		c->lost_unmatched++;
}

/* Notes foreground activity; writes the shared line only if it is stale. */
static __always_inline void touch(__u32 volume, __u64 now_ns)
{
	struct eb_vol *v = volume_of(volume);

	if (UNLIKELY(idle_stale(v->last_ns, now_ns)))
		v->last_ns = now_ns;
}

#endif
