/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Joins what different tracepoints tell of a request, by its bio. bcache_read and bcache_write tell
 * the path, bcache_request_end the end, and bcache's own state cannot be reached from the bio; for
 * dm see path.bpf.h.
 */
#ifndef EBBGATE_JOIN_BPF_H
#define EBBGATE_JOIN_BPF_H

#include "maps.bpf.h"
#include "join.h"

/* The request has begun, its path is not known yet: EB_PATHS and above are not paths. */
#define JOIN_BEGUN 7

#ifndef EBBGATE_BCC
/* bcache.bpf.c has its own. */
struct join_table joins;
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
