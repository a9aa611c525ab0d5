/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * In place of ../compat.bpf.h where bcc compiles the programs: the types are those of the kernel's
 * headers, and the maps were made before, so their descriptors are constants.
 */
#ifndef EBBGATE_COMPAT_BPF_H
#define EBBGATE_COMPAT_BPF_H

/* Named by bcache's tracepoints; the programs do not follow pointers to them. */
struct bcache_device;
struct bkey;
struct btree;
struct cache;
struct cache_set;

#include <linux/bio.h>
#include <linux/blkdev.h>
#include <trace/events/block.h>
#include <trace/events/bcache.h>

#define __bpf__
#define EBBGATE_BCC
#define HIST_WITHOUT_TABLES

/* A member of a struct of the kernel. */
#define READ_KERNEL(pointer, member)                                                \
	({                                                                          \
		typeof((pointer)->member) value_;                                   \
		bpf_probe_read_kernel(&value_, sizeof(value_), &(pointer)->member); \
		value_;                                                             \
	})

/* A map by its descriptor, and the memory of a map with one entry. */
#define MAP(fd) (*(char *)bpf_pseudo_fd(1, fd))
#define MEMORY(pointer, fd) (*(pointer)bpf_pseudo_fd(2, fd))

#define counters MAP(COUNTERS_FD)
#define edges MAP(EDGES_FD)
#define shared MEMORY(struct eb_shared *, SHARED_FD)
#define streams MEMORY(struct stream_table(*)[EB_VOLUMES][EB_DIRS], STREAMS_FD)
#define heat MEMORY(struct heat_table(*)[EB_VOLUMES], HEAT_FD)
#define joins MEMORY(struct join_table *, JOINS_FD)
#define submitters MEMORY(struct submitter(*)[SUBMITTERS], SUBMITTERS_FD)

#define ncpu COUNTERS_ENTRIES
#define flags                                                                       \
	((struct eb_flags){                                                         \
		.sync = REQ_SYNC,                                                   \
		.meta = REQ_META,                                                   \
		.ahead = REQ_RAHEAD,                                                \
		.preflush = REQ_PREFLUSH,                                           \
		.rare = REQ_META | REQ_RAHEAD | REQ_PREFLUSH | (REQ_OP_MASK & ~1U), \
		.nowait = REQ_NOWAIT,                                               \
	})

#define bpf_map_lookup_elem(map, key) bpf_map_lookup_elem_((__u64)(map), key)

/* The only use is for the member of a bio. */
#define bpf_core_field_offset(member) offsetof(struct bio, bi_end_io)

/* The address of a bio, a plain number here. */
#define bio_id(bio) ((__u64)(bio))
#define device_key(bio) (bio_id(bio) ^ 1ULL << 63)

#undef bio_dev
#define bio_dev(bio) READ_KERNEL(READ_KERNEL(bio, bi_bdev), bd_dev)

#define id_of(bio, raw) bio_id(bio)
#define dev_of(bio, raw) bio_dev(bio)
#define opf_of(bio, raw) READ_KERNEL(bio, bi_opf)
#define ioprio_of(bio, raw) READ_KERNEL(bio, bi_ioprio)
#define bytes_of(bio, raw) READ_KERNEL(bio, bi_iter.bi_size)
#define sector_of(bio, raw) READ_KERNEL(bio, bi_iter.bi_sector)
#define stamp_of(bio, raw) bio_stamp(bio)

/* As in maps.bpf.h; the address of the data is a plain number, too. */
static __always_inline __u64 data_id(struct bio *bio, bool raw)
{
	__u64 data = (__u64)READ_KERNEL(bio, bi_io_vec);

	if (!data)
		return bio_id(bio);
	return data + READ_KERNEL(bio, bi_iter.bi_idx) * 16 +
	       ((__u64)READ_KERNEL(bio, bi_iter.bi_bvec_done) << 32);
}

static __always_inline __u32 request_dev(struct request *rq)
{
	struct block_device *part = READ_KERNEL(rq, part);
	struct gendisk *disk = READ_KERNEL(READ_KERNEL(rq, q), disk);
	struct bio *bio = part ? NULL : READ_KERNEL(rq, bio);

	if (bio)
		part = READ_KERNEL(bio, bi_bdev);
	if (part)
		return READ_KERNEL(part, bd_dev);
	return disk ? READ_KERNEL(disk, major) << 20 | READ_KERNEL(disk, first_minor) : 0;
}

/*
 * bcc compiles for the oldest BPF, which has no such atomic operations. If two requests end a gap
 * at the same instant, both may count it, and the loader ignores the second edge.
 */
#define __sync_val_compare_and_swap(at, old, new) \
	({                                        \
		typeof(*(at)) found_ = *(at);     \
		if (found_ == (old))              \
			*(at) = new;              \
		found_;                           \
	})
#define __sync_lock_test_and_set(at, new)     \
	({                                    \
		typeof(*(at)) found_ = *(at); \
		*(at) = new;                  \
		found_;                       \
	})

/* Headers cannot tell whether this kernel stamps its bios: the programs read the clock. */
#define BIO_STAMPED 0
#define bio_stamp(bio) 0
#define arrival_stamp(bio) bpf_ktime_get_ns()

#define is_discard(op) ((op) == REQ_OP_DISCARD || (op) == REQ_OP_SECURE_ERASE)
#define is_special_write(op) ((op) == REQ_OP_WRITE_ZEROES || (op) == REQ_OP_ZONE_APPEND)

#endif
