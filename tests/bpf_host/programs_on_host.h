/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Builds the programs themselves for the host, as bpf/bcc/compat.bpf.h builds them for bcc: a test
 * includes this, then a .bpf.c, and calls its programs. The kernel's types have only the members
 * that the programs read; maps are memory, and there is one CPU and one task.
 */
#ifndef EBBGATE_PROGRAMS_ON_HOST_H
#define EBBGATE_PROGRAMS_ON_HOST_H

/* In place of bpf/compat.bpf.h. */
#define EBBGATE_COMPAT_BPF_H
#define EBBGATE_BCC

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "join.h"
#include "record.h"
#include "stream.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define SEC(name)

#define PROGRAM(name, tracepoint, call, args...)            \
	static __attribute__((unused)) void on_##name(args) \
	{                                                   \
		call;                                       \
	}
#define PROGRAM_WITH_QUEUE(name, tracepoint, call, args...)
#define PROGRAM_RAW(name, tracepoint, call)

struct gendisk {
	int major;
	int first_minor;
};

struct block_device {
	__u32 bd_dev;
};

struct request_queue {
	struct gendisk *disk;
};

struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev;
	__u32 bi_opf;
	__u16 bi_ioprio;
	struct {
		__u64 bi_sector;
		__u32 bi_size;
		__u32 bi_idx;
		__u32 bi_bvec_done;
	} bi_iter;
	void *bi_end_io;
	void *bi_private;
	__u16 bi_max_vecs;
	void *bi_io_vec;
	void *bi_pool;
	__u64 stamp; /* bi_issue.value */
};

struct request {
	struct request_queue *q;
	__u32 cmd_flags;
	__u32 __data_len;
	struct bio *bio;
	struct bio *biotail;
	struct block_device *part;
	__u64 start_time_ns;
};

struct bcache_device;
struct cache_set;

/* As in the kernel. */
enum {
	REQ_OP_READ = 0,
	REQ_OP_WRITE = 1,
	REQ_OP_DISCARD = 3,
	REQ_OP_SECURE_ERASE = 5,
	REQ_OP_ZONE_APPEND = 7,
	REQ_OP_WRITE_ZEROES = 9,
	REQ_SYNC = 1 << 11,
	REQ_META = 1 << 12,
	REQ_PREFLUSH = 1 << 18,
	REQ_RAHEAD = 1 << 19,
	REQ_NOWAIT = 1 << 21,
};

static const struct eb_flags flags = {
	.sync = REQ_SYNC,
	.meta = REQ_META,
	.ahead = REQ_RAHEAD,
	.preflush = REQ_PREFLUSH,
	.rare = REQ_META | REQ_RAHEAD | REQ_PREFLUSH | 0xfe,
	.nowait = REQ_NOWAIT,
};

#define ncpu 1

static struct eb_cpu counters;
static struct eb_shared shared;
static struct stream_table streams[EB_VOLUMES][EB_DIRS];
static struct heat_table heat[EB_VOLUMES];
static struct join_table joins;
static struct submitter submitters[SUBMITTERS];
static char edges;

/* What the helpers answer. */
static __u64 clock_ns;
static bool kernel_stamps_bios;

#define bpf_ktime_get_ns() clock_ns
#define bpf_get_smp_processor_id() 0
#define bpf_get_current_pid_tgid() 1
#define bpf_map_lookup_elem(map, key) ((void)(key), map)
#define bpf_ringbuf_output(map, data, bytes, how) ((void)(map), (void)(data), 0)
#define bpf_probe_read_kernel(to, bytes, from) memcpy(to, (const void *)(from), bytes)
#define bpf_core_field_offset(member) offsetof(struct bio, bi_end_io)
#define READ_KERNEL(pointer, member) ((pointer)->member)

#define bio_id(bio) ((__u64)(bio))
#define device_key bio_id
#define bio_dev(bio) ((bio)->bi_bdev->bd_dev)
#define id_of(bio, raw) bio_id(bio)
#define dev_of(bio, raw) bio_dev(bio)
#define opf_of(bio, raw) ((bio)->bi_opf)
#define ioprio_of(bio, raw) ((bio)->bi_ioprio)
#define bytes_of(bio, raw) ((bio)->bi_iter.bi_size)
#define sector_of(bio, raw) ((bio)->bi_iter.bi_sector)
#define stamp_of(bio, raw) bio_stamp(bio)

#define BIO_STAMPED kernel_stamps_bios
#define bio_stamp(bio) ((bio)->stamp)
#define arrival_stamp(bio) (BIO_STAMPED ? bio_stamp(bio) : bpf_ktime_get_ns())

#define is_discard(op) ((op) == REQ_OP_DISCARD || (op) == REQ_OP_SECURE_ERASE)
#define is_special_write(op) ((op) == REQ_OP_WRITE_ZEROES || (op) == REQ_OP_ZONE_APPEND)

static inline __u64 data_id(struct bio *bio, bool raw)
{
	if (!bio->bi_io_vec)
		return bio_id(bio);
	return (__u64)bio->bi_io_vec + bio->bi_iter.bi_idx * 16 +
	       ((__u64)bio->bi_iter.bi_bvec_done << 32);
}

static inline __u32 request_dev(struct request *rq)
{
	return rq->part->bd_dev;
}

/* Shows a device to the programs. */
static inline void show_device(struct eb_dev entry)
{
	shared.dev[entry.dev * EB_DEV_HASH >> 24] = entry;
}

static inline __u64 latencies(const struct eb_flow *flow)
{
	__u64 sum = 0;

	for (int i = 0; i < HIST_LAT_BUCKETS; i++)
		sum += flow->lat[i];
	return sum;
}

static inline void forget_all(void)
{
	memset(&counters, 0, sizeof(counters));
	memset(&shared, 0, sizeof(shared));
	memset(streams, 0, sizeof(streams));
	memset(heat, 0, sizeof(heat));
	memset(&joins, 0, sizeof(joins));
	memset(submitters, 0, sizeof(submitters));
	(void)edges;
	clock_ns = 1000000000;
	kernel_stamps_bios = false;
}

#endif
