/* SPDX-License-Identifier: GPL-2.0-only */
/* The loader: its state, and what each of its files offers to the others. */
#ifndef EBBGATE_PROBE_H
#define EBBGATE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "command.h"
#include "json.h"
#include "record.h"
#include "symbols.h"

#define PROBE_VERSION "0.1.0"
#define PROTOCOL 1
#define NS_PER_S 1000000000ULL
#define NS_PER_MS 1000000ULL
#define WAIT_NS_DEFAULT (300 * NS_PER_MS)
#define PARTITIONS_MAX 32
#define TICK_NS_DEFAULT (250 * NS_PER_MS)
/* The state of a signal: `ok`, or `missing: ` and why. */
#define WHY_BYTES 160
#define SIGNAL_BYTES (WHY_BYTES + 16)
#define ENDIO_MODULES 4

enum exit_code {
	EXIT_OK = 0,
	EXIT_USAGE = 64,
	EXIT_UNSUPPORTED = 69,
	EXIT_INTERNAL = 70,
	EXIT_NO_PRIVILEGE = 77,
};

struct bpf_object;
struct block_bpf;
struct bcache_bpf;
struct dm_bpf;

/* A cache or backing device; cache devices can be shared by volumes. */
struct device {
	uint32_t dev; /* 0: free */
	unsigned int users;
	bool bio_based; /* completes bios, not requests */
	/* resync.c: destage whose start or end was never seen, and when a counter last moved. */
	int64_t unseen_ios, unseen_bytes;
	uint64_t last_queued_ios, last_done_ios;
	uint64_t moved_ns;
};

/* Destage of one device since it is tracked, as the programs count it. */
struct counted {
	int64_t queued_ios, queued_bytes;
	int64_t done_ios, done_bytes;
};

/* The same with what is under way; a start or end that was never seen does not show in it. */
struct destage {
	uint64_t ios, bytes; /* under way */
	int64_t queued_ios;
	uint64_t done_ios, done_bytes;
};

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
	uint64_t wait_ns;
	uint64_t pace_ns;
	uint64_t pace_above; /* when relaxed: queue records only with more than this in flight */
	uint64_t queue_said_ns;
	bool relaxed;
	enum edge_state state;
	uint64_t armed_last_ns;
	uint64_t check_ns;		 /* when the edge state is looked at next */
	uint64_t queue_ns;		 /* when the next queue record is due */
	uint64_t other_ios, other_bytes; /* highest seen: a difference, but monotone */
	uint64_t stuck_started, stuck_done;
	uint64_t pipe_moved_ns;	       /* when destage was last seen under way */
	int64_t held_base;	       /* queue.c, look_at_pipe */
	char class_missing[WHY_BYTES]; /* why destage cannot be told from other requests, or empty
					*/
};

struct warning {
	uint64_t n; /* at this tick, over all volumes */
	uint64_t said;
	uint64_t said_ns;
};

enum warning_kind {
	WARN_RING_LOST,
	WARN_UNMATCHED,
	WARN_STREAMS,
	WARN_TABLE_FULL,
	WARN_CHAIN,
	WARN_MISSED,
	WARN_KINDS
};

struct features {
	char volume[SIGNAL_BYTES], path[SIGNAL_BYTES], bypass[SIGNAL_BYTES];
	char device[SIGNAL_BYTES], class[SIGNAL_BYTES];
	char dm_path[SIGNAL_BYTES], dm_class[SIGNAL_BYTES];
	struct eb_flags flags;
};

struct probe {
	struct block_bpf *block;
	struct bcache_bpf *bcache;
	bool bcache_attached;
	struct dm_bpf *dm;
	bool dm_attached;
	/* endio.c: what was read of /proc/kallsyms, of which modules all of it, and of which load.
	 */
	struct symbols symbols;
	uint32_t endio_modules;
	uint64_t module_id[ENDIO_MODULES];
	struct bpf_link *bio_complete;
	uint32_t ncpu;
	struct eb_shared *shared;
	struct eb_vol_cpu *vol_cpu;
	struct eb_dev_cpu *dev_cpu;
	struct ring_buffer *ring;
	struct features features;
	struct volume volume[EB_VOLUMES];
	struct device device[EB_DEVICES];
	struct warning warning[WARN_KINDS];
	uint64_t tick_ns;
	uint64_t next_tick_ns;
	uint64_t next_scan_ns; /* of the volumes' partitions */
	const char *bye;       /* set: leave the loop and say why */
	int out_error;	       /* set: the reader is gone */
	struct json json;
};

struct options {
	char track[EB_VOLUMES][512]; /* whole command lines */
	size_t tracks;
	uint64_t tick_ns;
	bool check;
};

/* options.c: -1 to go on, or the exit code. */
int parse_options(int argc, char **argv, struct options *options);

/* clock.c */
uint64_t now_ns(void);

/* load.c: programs and maps. All return 0 or -errno, with a line on stderr. */
int load_block(struct probe *p);
int attach_bio_complete(struct probe *p);
void detach_bio_complete(struct probe *p);
void forget_streams(struct probe *p, uint32_t volume);
void unload(struct probe *p);
uint64_t missed(const struct bpf_object *object);
uint64_t missed_runs(const struct probe *p);

/* bcache.c: prepare loads the programs and says in features what is missing; ready attaches them
 * too, NULL or a complaint. */
int prepare_bcache(struct probe *p);
const char *ready_bcache(struct probe *p);
void detach_bcache(struct probe *p);
void unload_bcache(struct probe *p);
uint64_t missed_bcache_runs(const struct probe *p);

/* dm.c: the same for device-mapper. Its modules may come one by one. */
int prepare_dm(struct probe *p);
const char *ready_dm(struct probe *p);
void detach_dm(struct probe *p);
void unload_dm(struct probe *p);
uint64_t missed_dm_runs(const struct probe *p);

/* features.c: what this kernel can give, asked of its BTF. */
void find_features(struct features *f);
bool find_fill_bit(__u64 *offset, __u64 *mask);

/* endio.c: the addresses of the completion functions of these modules, ENDIO_*. */
bool endio_known(const struct probe *p, uint32_t wanted);
/* Reads them if they are not known; false with the reason when one is not to be had. */
bool learn_endio(struct probe *p, uint32_t wanted, char why[WHY_BYTES]);

/* caps.c */
int keep_capabilities(const struct probe *p);
bool have_privilege(void);

/* devtable.c: what a dev_t is, as the programs see it. Without a role it is removed. */
int dev_set(struct eb_shared *shared, struct eb_dev entry);

/* entries.c: shows a dev_t to the programs as the tracked volumes have it now. */
int publish_dev(struct probe *p, uint32_t dev);
bool has_partition(const struct volume *v, uint32_t dev);

/* track.c: NULL, or a complaint. */
const char *track(struct probe *p, const struct command *cmd);
struct volume *volume_named(struct probe *p, const char *name);
void untrack(struct probe *p, struct volume *v, const char *why);
void untrack_vanished(struct probe *p);
void track_partitions(struct probe *p);

/* sysfs.c */
bool block_device_exists(uint32_t dev);
bool block_has_requests(uint32_t dev);
bool block_in_flight(uint32_t dev, uint64_t inflight[EB_DIRS]);
size_t block_partitions(uint32_t dev, uint32_t *parts, size_t max);

/* sums.c: over all CPUs. */
void sum_volume(const struct probe *p, const struct volume *v, struct eb_vol_cpu *sum);
void sum_device(const struct probe *p, int device, struct eb_dev_cpu *sum);
void volume_in_flight(const struct probe *p, const struct volume *v, int64_t inflight[EB_DIRS]);
void count_destage(const struct probe *p, int device, struct counted *c);
void destage_in_flight(const struct probe *p, int device, struct destage *d);

/* resync.c */
void start_in_flight(struct probe *p, struct volume *v);
void resync(struct probe *p, struct volume *v, const struct eb_vol_cpu *c);
void resync_destage(struct probe *p, struct volume *v, uint64_t now);

/* edges.c */
void check_edges(struct probe *p, uint64_t now);
void set_wait(struct probe *p, struct volume *v, uint64_t wait_ns);
int on_edge(void *probe, void *data, size_t bytes);

/* tick.c, queue.c */
void say_tick(struct probe *p, struct volume *v, const struct eb_vol_cpu *c, uint64_t now);
const char *set_pace(struct probe *p, struct volume *v, const struct command *cmd);
void queue_drained(struct probe *p, struct volume *v, uint64_t now);
void check_queues(struct probe *p, uint64_t now);

/* say.c: the small records. */
void say(struct probe *p);
void say_hello(struct probe *p);
void say_track(struct probe *p, const struct volume *v);
void say_untrack(struct probe *p, const struct volume *v, const char *why);
void say_error(struct probe *p, const char *text, const char *line);
void say_warnings(struct probe *p, uint64_t now);
void say_bye(struct probe *p);

static inline uint32_t volume_index(const struct probe *p, const struct volume *v)
{
	return v - p->volume;
}

static inline struct eb_vol *volume_shared(const struct probe *p, const struct volume *v)
{
	return &p->shared->vol[volume_index(p, v)];
}

#endif
