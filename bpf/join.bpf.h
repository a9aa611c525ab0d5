/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Joins what different tracepoints tell of a request, by its bio. bcache_read and bcache_write tell
 * the path, bcache_request_end the end, and bcache's own state cannot be reached from the bio; for
 * dm see dm.bpf.c.
 */
#ifndef EBBGATE_JOIN_BPF_H
#define EBBGATE_JOIN_BPF_H

#include "maps.bpf.h"
#include "join.h"

/* The request has begun, its path is not known yet: EB_PATHS and above are not paths. */
#define JOIN_BEGUN 7

#ifndef EBBGATE_BCC
/* bcache.bpf.c has its own; dm.bpf.c has that of block.bpf.c. */
struct join_table joins;
#endif

static __always_inline struct join *join_of(struct eb_vol_cpu *c, __u64 id)
{
	return join_place(&joins, id, &c->lost_table);
}

static __always_inline void join_put(struct eb_vol_cpu *c, __u64 id, __u32 path)
{
	join_of(c, id)->id = id | path;
}

static __always_inline void join_begin(struct eb_vol_cpu *c, __u64 id, __u64 start_ns)
{
	struct join *j = join_of(c, id);

	j->id = id | JOIN_BEGUN;
	j->start_ns = start_ns;
}

/* Removes the entry of a request that ends; returns its path, or EB_PATHS or more. */
static __always_inline __u32 join_take(__u64 id, __u64 *start_ns)
{
	struct join *j = join_find(&joins, id);
	__u64 found;

	if (!j)
		return EB_PATHS;
	found = j->id;
	j->id = 0;
	*start_ns = j->start_ns;
	return found & JOIN_PATH_MASK;
}

#ifndef EBBGATE_BCC
/* As for joins. */
struct submitter submitters[SUBMITTERS];
#endif

static __always_inline __u64 this_task(void)
{
	return (__u32)bpf_get_current_pid_tgid();
}

static __always_inline struct submitter *submitter_of(__u64 task)
{
	return &submitters[task & (SUBMITTERS - 1)];
}

static __always_inline struct submitter *submitter_put(__u64 id)
{
	__u64 task = this_task();
	struct submitter *s = submitter_of(task);

	s->task = task;
	s->id = id;
	return s;
}

#endif
