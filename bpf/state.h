/* SPDX-License-Identifier: GPL-2.0-only */
/* The state of the loader: tracked volumes, their devices, loaded programs. */
#ifndef EBBGATE_STATE_H
#define EBBGATE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "command.h"
#include "kernel_features.h"
#include "json.h"
#include "record.h"
#include "stream.h"
#include "symbols.h"

#define PARTITIONS_MAX 32
#define INHERITED_PROGRAMS 9
#define ENDIO_MODULES 4

/* A cache or backing device; volumes can share a cache device. */
struct device {
	uint32_t dev; /* 0: free */
	unsigned int users;
	bool bio_based; /* completes bios, not requests */
	/* in_flight.c: destage whose start or end was not seen, and when a counter last moved. */
	int64_t unseen_ios, unseen_bytes;
	uint64_t last_queued_ios, last_done_ios;
	uint64_t moved_ns;
	bool resync;
};

/* ARMED: the programs will push the next arrival, but an earlier one may have been missed.
 */
enum edge_state { STATE_BUSY, STATE_ARMED, STATE_IDLE };

struct volume {
	bool used;
	char name[NAME_BYTES];
	enum kind kind;
	enum mode mode;
	uint32_t dev;
	bool bio_based; /* completes bios, not requests */
	int backing;	/* device index, -1: none */
	int cache[CACHES_MAX];
	size_t caches;
	uint32_t part[PARTITIONS_MAX];
	size_t parts;
	/* Why destage cannot be told from other requests; empty if it can. */
	char class_missing[REASON_BYTES];

	/* edges.c */
	enum edge_state state;
	uint64_t wait_ns;
	uint64_t check_ns; /* when the edge state is due for a check */
	uint64_t armed_last_ns;

	/* queue.c */
	uint64_t pace_ns;
	uint64_t queue_ns; /* when the next queue sample is due */
	uint64_t pipeline_moved_ns;
	uint64_t pipeline_misses; /* probe.misses at the last sample */
	int64_t awaiting_write_base;

	/* in_flight.c */
	uint64_t last_started, last_done;
	uint64_t moved_ns;	   /* when one of them was seen to have changed */
	uint64_t earlier_until_ns; /* until then requests that began before tracking may end */
	bool resync; /* a program was skipped since the count was last known to be right */

	/* tick_record.c: highest values of differences that are reported as counters. */
	uint64_t other_ios, other_bytes;
	uint64_t foreground_ios[EB_DIRS], foreground_bytes[EB_DIRS];

	/* records.c: sampled references that were not read in time; when the period of misses
	 * began, and how many had had no room before.
	 */
	uint64_t lost_reuse;
	uint64_t heat_since_ns, heat_dropped;
	bool has_heat; /* misses are counted at the right chunks */

	/* attribution_record.c: when the period of a side began, when it ended if its record is
	 * not written yet, and how many misses had had no room before.
	 */
	uint64_t attribution_since_ns, attribution_until_ns;
	uint64_t cgroups_dropped, inodes_dropped;
	bool has_attribution;
};

enum warning_kind {
	WARN_RING_LOST,
	WARN_UNMATCHED,
	WARN_STREAMS,
	WARN_TABLE_FULL,
	WARN_CHAIN,
	WARN_RECURSION,
	WARN_KINDS
};

struct warning {
	uint64_t n; /* at this tick, over all volumes */
	uint64_t reported;
	uint64_t reported_ns;
};

/*
 * What the tracked volumes need besides block_bio_queue, which is always attached. `rq_complete`: a
 * device that completes requests, `bio_complete`: one that completes bios.
 */
struct program_needs {
	bool bcache, dm, rq_complete, bio_complete;
};

/* Descriptors of a program that was loaded before and of its link. */
struct inherited_program {
	int fd;
	int link; /* -1: not attached */
};

struct probe {
	/* inherited.c: with --maps nothing is loaded. */
	bool inherits;
	struct inherited_program inherited[INHERITED_PROGRAMS];
	/* programs.c */
	struct block_bpf *block;
	struct bpf_link *rq_complete, *bio_complete;
	struct bcache_bpf *bcache;
	bool bcache_attached;
	struct ring_buffer *ring;
	/* Memory of the programs' maps. */
	uint32_t ncpu;
	struct eb_shared *shared;
	struct eb_cpu *cpu;			  /* by processor */
	struct stream_table (*streams)[EB_DIRS];  /* by volume */
	struct heat_table *bcache_heat, *dm_heat; /* by volume */
	struct attribution *attribution;	  /* by volume */
	/* endio.c: what was read of /proc/kallsyms, for which modules it is complete, and which
	 * load of each module it belongs to.
	 */
	struct symbols symbols;
	uint32_t endio_modules;
	uint64_t module_id[ENDIO_MODULES];

	struct features features, reported; /* now, and as they were written last */
	struct volume volume[EB_VOLUMES];
	struct device device[EB_DEVICES];
	struct warning warning[WARN_KINDS];
	uint64_t misses; /* runs of programs that the kernel skipped */
	/* loop.c */
	uint64_t tick_ns;
	uint64_t next_tick_ns;
	uint64_t next_scan_ns;	 /* of the volumes' partitions */
	const char *stop_reason; /* set: leave the loop */
	/* records.c */
	struct json json;
	bool output_broken; /* the reader is gone */
};

/* The tracked volumes. */
#define for_each_volume(v, p)                                                                \
	for (__typeof__(&(p)->volume[0]) v = (p)->volume; v < (p)->volume + EB_VOLUMES; v++) \
		if (v->used)

static inline uint32_t volume_index(const struct probe *p, const struct volume *v)
{
	return v - p->volume;
}

static inline struct heat_table *volume_heat(const struct probe *p, const struct volume *v)
{
	struct heat_table *tables = v->kind == KIND_BCACHE ? p->bcache_heat : p->dm_heat;

	return &tables[volume_index(p, v)];
}

static inline struct attribution *volume_attribution(const struct probe *p, const struct volume *v)
{
	return &p->attribution[volume_index(p, v)];
}

static inline struct eb_vol *volume_shared(const struct probe *p, const struct volume *v)
{
	return &p->shared->vol[volume_index(p, v)];
}

#endif
