/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Joins what different tracepoints tell of a request, by its bio. bcache_read and bcache_write tell
 * the path, bcache_request_end the end, and bcache's own state cannot be reached from the bio; for
 * dm see dm.bpf.c. The hash has sets of four instead of lists: no lock, no allocation, mostly one
 * cache line a request. A request that is pushed out is counted, and its latency is missing.
 */
#ifndef EBBGATE_JOIN_BPF_H
#define EBBGATE_JOIN_BPF_H

#include "maps.bpf.h"

/* 2048 sets: 512 requests in flight fill a set and one more once in a hundred times. */
#define JOIN_BITS 11
#define JOIN_WAYS 4
#define JOIN_PATH_MASK 7ULL
/* The request has begun, its path is not known yet: EB_PATHS and above are not paths. */
#define JOIN_BEGUN 7

struct join {
	__u64 id;	/* of the bio, with the path in its low bits; 0: empty */
	__u64 start_ns; /* for bcache only where the kernel does not stamp bios */
	__u64 bytes;	/* for dm only */
	__u64 pad;
};

#ifndef EBBGATE_BCC
/* A set fills two neighbouring cache lines. */
static struct join joins[1 << JOIN_BITS][JOIN_WAYS] __attribute__((aligned(128)));

/*
 * The identity of a bio as a number. The verifier refuses to hash a kernel pointer but allows the
 * distance between two pointers. Both are aligned to 8 bytes, so the low bits are free.
 */
static __always_inline __u64 bio_id(struct bio *bio)
{
	__u64 id = (__u64)bio, origin = (__u64)&shared;

	asm volatile("%0 -= %1" : "+r"(id) : "r"(origin));
	return id;
}
#endif

static __always_inline struct join *join_set(__u64 id)
{
	return joins[(id * 0x9E3779B97F4A7C15ULL) >> (64 - JOIN_BITS)];
}

static __always_inline bool join_is(const struct join *j, __u64 id)
{
	return (j->id ^ id) <= JOIN_PATH_MASK;
}

/* The entry of a bio, or NULL. */
static __always_inline struct join *join_find(__u64 id)
{
	struct join *set = join_set(id);

	for (int i = 0; i < JOIN_WAYS; i++)
		if (join_is(&set[i], id))
			return &set[i];
	return NULL;
}

/* A place for a bio that has none: a free one, else the last, whose bio is then lost. */
static __always_inline struct join *join_place(struct eb_vol_cpu *c, __u64 id)
{
	struct join *set = join_set(id);

	for (int i = 0; i < JOIN_WAYS; i++)
		if (!set[i].id || join_is(&set[i], id))
			return &set[i];
	c->lost_table++;
	return &set[JOIN_WAYS - 1];
}

/* Sets the path of a bio. Where join_begin was first, an earlier place may be free by now. */
static __always_inline void join_put(struct eb_vol_cpu *c, __u64 id, __u32 path)
{
	struct join *j = NULL;

	if (!BIO_STAMPED)
		j = join_find(id);
	if (!j)
		j = join_place(c, id);
	j->id = id | path;
}

static __always_inline void join_begin(struct eb_vol_cpu *c, __u64 id, __u64 now_ns)
{
	struct join *j = join_place(c, id);

	j->id = id | JOIN_BEGUN;
	j->start_ns = now_ns;
}

/* Removes the entry of a request that ends; returns its path, or EB_PATHS or more. */
static __always_inline __u32 join_take(__u64 id, __u64 *start_ns)
{
	struct join *j = join_find(id);
	__u64 found;

	if (!j)
		return EB_PATHS;
	found = j->id;
	j->id = 0;
	*start_ns = j->start_ns;
	return found & JOIN_PATH_MASK;
}

/*
 * bcache_write shows a clone of the bio, but in the task that has just passed
 * bcache_request_start. The table is by task, not by CPU, since the task may sleep in between.
 */
#define SUBMITTERS 1024
struct submitter {
	__u64 task;
	__u64 bio;
};

#ifndef EBBGATE_BCC
static struct submitter submitters[SUBMITTERS];
#endif

static __always_inline void submitter_put(__u64 bio)
{
	__u64 task = (__u32)bpf_get_current_pid_tgid();
	struct submitter *s = &submitters[task & (SUBMITTERS - 1)];

	s->task = task;
	s->bio = bio;
}

/* The bio that this task is submitting; 0 if another task took its place. */
static __always_inline __u64 submitter_get(void)
{
	__u64 task = (__u32)bpf_get_current_pid_tgid();
	struct submitter *s = &submitters[task & (SUBMITTERS - 1)];

	return s->task == task ? s->bio : 0;
}

#endif
