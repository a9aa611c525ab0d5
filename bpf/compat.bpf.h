/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel types that the programs read, with CO-RE. They replace vmlinux.h: they show what the
 * programs depend on, and the machine that builds them needs no BTF.
 */
#ifndef EBBGATE_COMPAT_BPF_H
#define EBBGATE_COMPAT_BPF_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

#define NULL ((void *)0)
#define true 1
#define false 0

enum bpf_map_type {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
	BPF_ANY = 0,
	BPF_F_MMAPABLE = 1024,
};

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define __core __attribute__((preserve_access_index))

/* A member of a struct whose type the verifier does not know. */
#define READ_KERNEL(pointer, member) BPF_CORE_READ(pointer, member)

/* A program: a call with the arguments of its tracepoint. */
#define PROGRAM(name, tracepoint, call, args...) \
	SEC("tp_btf/" tracepoint)                \
	int BPF_PROG(name, ##args)               \
	{                                        \
		call;                            \
		return 0;                        \
	}

/*
 * The same tracepoint where its first argument is the request queue, until e8a676d61c07 ("block:
 * simplify and extend the block_bio_merge tracepoint class") (in v5.11).
 */
#define PROGRAM_WITH_QUEUE(name, tracepoint, call, args...)              \
	SEC("tp_btf/" tracepoint)                                        \
	int BPF_PROG(name##_with_queue, struct request_queue *q, ##args) \
	{                                                                \
		call;                                                    \
		return 0;                                                \
	}

/* The same tracepoint of a module without BTF; its arguments are numbers. */
#define PROGRAM_RAW(name, tracepoint, call) \
	SEC("raw_tp/" tracepoint)           \
	int name##_raw(__u64 *arg)          \
	{                                   \
		call;                       \
		return 0;                   \
	}

struct gendisk {
	int major;
	int first_minor;
} __core;

struct block_device {
	__u32 bd_dev;
} __core;

struct request_queue {
	struct gendisk *disk;
} __core;

struct bvec_iter {
	__u64 bi_sector;
	__u32 bi_size;
	__u32 bi_idx;
	__u32 bi_bvec_done;
} __core;

struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev;
	__u32 bi_opf;
	__u16 bi_ioprio;
	struct bvec_iter bi_iter;
	void *bi_end_io;
	void *bi_private;
	__u16 bi_max_vecs;
	struct bio_vec *bi_io_vec;
	void *bi_pool;
} __core;

struct request {
	struct request_queue *q;
	__u32 cmd_flags;
	__u32 __data_len;
	struct bio *bio;
	struct bio *biotail;
	struct block_device *part;
	__u64 start_time_ns;
} __core;

/*
 * bio->bi_bdev was bi_disk until 309dca309fc3 ("block: store a block_device pointer in struct bio")
 * (in v5.12). A bio for a partition was changed to one for its disk before it was queued.
 */
struct bio___disk {
	struct gendisk *bi_disk;
} __core;

/* Where a bio begins in the current segment of its data; bi_bvec_done is not in v7.3. */
struct bvec_iter___offset {
	__u32 bi_offset;
} __core;

struct bio___offset {
	struct bvec_iter___offset bi_iter;
} __core;

#define HAS_BVEC_DONE bpf_core_field_exists(((struct bvec_iter *)0)->bi_bvec_done)

#define BIO_HAS_BDEV bpf_core_field_exists(((struct bio *)0)->bi_bdev)

/* request_queue.disk is in v5.15; request.rq_disk was removed in v5.17. */
struct request___disk {
	struct gendisk *rq_disk;
} __core;

static __always_inline __u32 disk_dev(struct gendisk *disk)
{
	return disk ? disk->major << 20 | disk->first_minor : 0;
}

/* The dev_t of the device of a bio. */
static __always_inline __u32 bio_dev(struct bio *bio)
{
	if (BIO_HAS_BDEV)
		return bio->bi_bdev->bd_dev;
	return disk_dev(((struct bio___disk *)bio)->bi_disk);
}

static __always_inline struct gendisk *request_disk(struct request *rq)
{
	if (bpf_core_field_exists(((struct request_queue *)0)->disk))
		return rq->q->disk;
	return ((struct request___disk *)rq)->rq_disk;
}

/* While I/O statistics are off, only the bio names the partition. A flush has no bio. */
static __always_inline __u32 request_dev(struct request *rq)
{
	struct block_device *part;
	struct bio *bio;

	if (BIO_HAS_BDEV) {
		part = rq->part;
		if (part)
			return part->bd_dev;
		bio = rq->bio;
		if (bio)
			return bio->bi_bdev->bd_dev;
	}
	return disk_dev(request_disk(rq));
}

/* bcache: pointers that the programs do not follow. */
struct bcache_device;
struct cache_set;

/*
 * With CONFIG_BLK_CGROUP, submit_bio stamps each bio with monotonic ns since
 * 5238dcf4136f ("block: replace bio->bi_issue_stat by bio-specific type") (in v4.19).
 * Newer kernels stamp only if a cgroup policy asks for it, in another field: there the programs
 * read the clock.
 */
struct bio_issue {
	__u64 value;
} __core;

struct bio___stamped {
	struct bio_issue bi_issue;
} __core;

#define BIO_STAMPED bpf_core_field_exists(((struct bio___stamped *)0)->bi_issue)

static __always_inline __u64 bio_stamp(struct bio *bio)
{
	return ((struct bio___stamped *)bio)->bi_issue.value;
}

/* When a bio arrived: its stamp or the time. stamp_age_ns() accepts both. */
static __always_inline __u64 arrival_stamp(struct bio *bio)
{
	return BIO_STAMPED ? bio_stamp(bio) : bpf_ktime_get_ns();
}

/* enum req_opf became req_op in ff07a02e9e8e ("treewide: Rename enum req_opf") (in v6.0). */
enum req_op {
	REQ_OP_READ,
	REQ_OP_WRITE,
	REQ_OP_DISCARD = 3,
	REQ_OP_SECURE_ERASE = 5,
	REQ_OP_ZONE_APPEND = 7,
	REQ_OP_WRITE_ZEROES = 9,
};

enum req_opf {
	REQ_OP_DISCARD___opf = 3,
	REQ_OP_SECURE_ERASE___opf = 5,
	REQ_OP_ZONE_APPEND___opf = 7,
	REQ_OP_WRITE_ZEROES___opf = 9,
};

static __always_inline bool is_discard(__u32 op)
{
	if (bpf_core_enum_value_exists(enum req_op, REQ_OP_DISCARD))
		return op == bpf_core_enum_value(enum req_op, REQ_OP_DISCARD) ||
		       op == bpf_core_enum_value(enum req_op, REQ_OP_SECURE_ERASE);
	return op == bpf_core_enum_value(enum req_opf, REQ_OP_DISCARD___opf) ||
	       op == bpf_core_enum_value(enum req_opf, REQ_OP_SECURE_ERASE___opf);
}

/* An operation that writes bytes but is not REQ_OP_WRITE. */
static __always_inline bool is_special_write(__u32 op)
{
	if (bpf_core_enum_value_exists(enum req_op, REQ_OP_WRITE_ZEROES))
		return op == bpf_core_enum_value(enum req_op, REQ_OP_WRITE_ZEROES) ||
		       op == bpf_core_enum_value(enum req_op, REQ_OP_ZONE_APPEND);
	return op == bpf_core_enum_value(enum req_opf, REQ_OP_WRITE_ZEROES___opf) ||
	       op == bpf_core_enum_value(enum req_opf, REQ_OP_ZONE_APPEND___opf);
}

#endif
