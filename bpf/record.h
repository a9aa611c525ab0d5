/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory that the programs and the loader share. It never leaves the process (the protocol is the
 * JSON of README.md), so its layout may change with any commit.
 */
#ifndef EBBGATE_RECORD_H
#define EBBGATE_RECORD_H

#ifdef __bpf__
#include "compat.bpf.h"
#else
#include <linux/types.h>
#endif
#include "attribution.h"
#include "heat.h"
#include "hist.h"
#include "reuse.h"

/* A server has a handful of cached volumes; with 16 the streams take 1 MiB. */
#define EB_VOLUMES 16
/* A backing device per volume, and as many cache devices. */
#define EB_DEVICES 32
/* Bound of the loops over CPUs; the loader refuses larger machines. */
#define EB_CPUS_MAX 1024
/* dev_t table: volumes, their partitions and devices. */
#define EB_DEV_SLOTS 256
/* Multiplicative hash of a dev_t: the top 8 bits are its home slot. */
#define EB_DEV_HASH 0x9E3779B1u
/* A lookup reads at most this many slots; the loader writes only to them. */
#define EB_DEV_PROBES 4

#define EB_READ 0
#define EB_WRITE 1
#define EB_DIRS 2

/* Roles of a device (eb_dev.roles). */
#define EB_IS_VOLUME 1	 /* users' requests arrive here */
#define EB_IS_BACKING 2	 /* the slow device of volume eb_dev.backs */
#define EB_IS_CACHE 4	 /* a fast device */
#define EB_IS_DISK 8	 /* a plain disk or dm volume: ends are counted at the block layer */
#define EB_HAS_CACHE 32	 /* a device of a cache: has classes and destage */
#define EB_IS_BIO 16	 /* a device without requests (dm, md): bios complete */
#define EB_IS_DM 64	 /* a dm volume, or a device without requests below one */
#define EB_IS_JOINED 128 /* its bios are followed from their arrival to their end */
#define EB_SERVES_DM 256 /* a device of a dm volume: parts of its requests are sent here */
#define EB_HAS_PARTS 512 /* a dm volume: its requests are followed by their parts */

/*
 * A volume whose reads of a warm-up do not count. Where programs are inherited a cached volume of
 * dm looks like any other device without requests.
 */
#define EB_HAS_WARM_READS(roles) \
	((roles)&EB_IS_VOLUME && ((roles) & (EB_IS_DM | EB_IS_BIO) || !((roles)&EB_IS_DISK)))

#define EB_FG 0 /* of users */
#define EB_BG 1 /* of the cache: destage, fills, journal, metadata, garbage collection */
#define EB_CLASSES 2

enum eb_path {
	EB_READ_HIT,
	EB_READ_MISS,
	EB_READ_BYPASS,
	EB_WRITE_BACK,
	EB_WRITE_THROUGH,
	EB_WRITE_BYPASS,
	EB_PATHS
};

/* Mode of a dm volume: what a write to its cache device is. */
enum eb_mode { EB_MODE_WRITEBACK, EB_MODE_WRITETHROUGH, EB_MODE_PASSTHROUGH };

enum eb_reason { EB_SEQUENTIAL, EB_CONGESTED, EB_REASONS };

/* Completion functions, whose addresses tell who sent a bio (/proc/kallsyms). */
enum eb_endio {
	EB_END_DIRTY,	    /* dirty_endio: destage, write to the backing device */
	EB_END_READ_DIRTY,  /* read_dirty_endio: destage, read from the cache device */
	EB_END_BACKING,	    /* backing_request_endio: foreground on the backing device */
	EB_END_CACHE_READ,  /* bch_cache_read_endio: foreground hit */
	EB_END_DATA_INSERT, /* bch_data_insert_endio: foreground write, or a fill */
	EB_END_DM_CLONE,    /* clone_endio: foreground of a volume of dm, either device */
	EB_END_OVERWRITE,   /* overwrite_endio: foreground write that fills a block of dm-cache */
	EB_END_DM_IO,	    /* endio of dm-io: dm copies a block, or writes metadata */
	EB_END_CHAIN,	    /* bio_chain_endio: front part of a split bio */
	EB_ENDIOS
};

/* Address of a function that is not known: no bio has it. */
#define EB_NO_ENDIO 1

/* One entry of the dev_t table. dev 0 is empty, roles 0 is a removed entry. */
struct eb_dev {
	__u32 dev;   /* kernel dev_t: major << 20 | minor */
	__u16 roles; /* EB_IS_* and so on */
	__u8 volume; /* index of the volume that it is */
	__u8 backs;  /* index of the volume that it backs */
	__u8 device; /* index of the cache or backing device that it is */
	__u8 pad[7];
};
_Static_assert(sizeof(struct eb_dev) == 16, "hole in eb_dev");

/* State of a volume that all CPUs share; written rarely (idle.h), read often. */
struct eb_vol {
	__u64 last_ns;		/* last foreground activity, at most IDLE_GRAIN_NS stale */
	__u32 armed;		/* the loader waits for the next arrival (idle edge) */
	__u32 paced;		/* the loader needs a record when destage runs empty */
	__s64 unseen[EB_DIRS];	/* correction of the requests in flight (in_flight.c) */
	__s64 destage_unseen;	/* the same for destage writes to the backing device */
	__u32 side;		/* where misses are attributed: attribution.h */
	__u32 mode;		/* of a dm volume: enum eb_mode */
	__u64 data_sector;	/* where it begins on its backing device, as bios there have it */
	__s32 earlier[EB_DIRS]; /* in_flight.c: at most so many ends of earlier requests follow */
};
_Static_assert(sizeof(struct eb_vol) == 64, "eb_vol must fill one cache line");

/*
 * A target of dm gets a clone of the bio that arrived at the volume. The clone lies in a struct
 * dm_target_io, which points to a struct dm_io, which points to the bio that arrived. In bytes.
 */
struct eb_dm_offsets {
	__u64 clone;	/* dm_target_io.clone; 0: not known */
	__u64 io;	/* dm_target_io.io */
	__u64 original; /* dm_io.orig_bio */
};

struct eb_shared {
	struct eb_dev dev[EB_DEV_SLOTS];
	struct eb_vol vol[EB_VOLUMES];
	__u64 endio[EB_ENDIOS];
	__u64 fill_offset; /* in struct data_insert_op: the word that tells a fill, ... */
	__u64 fill_mask;   /* ... and its bit; 0: not known */
	__u64 clock_ns;	   /* time of the last tick: gives the high bits of stamps */
	struct eb_dm_offsets dm;
};

/*
 * The I/O priority of reads that warm the cache (idle class, a level that no tool gives), by which
 * they are no load of users; controller/ebbgate/warm/worker.py sets it.
 */
#define EB_WARM_IOPRIO 0x6005

/* REQ_OP_MASK is a macro, so it is not in BTF; 8 bits since v4.10. */
#define EB_OP_MASK 0xff

/* Masks of bio flags, from BTF because their numbers differ between kernels. */
struct eb_flags {
	__u32 sync;
	__u32 meta;
	__u32 ahead;
	__u32 preflush;
	__u32 rare; /* meta, ahead, preflush, and the bits of operations but read and write */
	__u32 nowait;
};

/* Requests of one kind with their latency. */
struct eb_flow {
	__u64 ios;
	__u64 bytes;
	__u64 lat[HIST_LAT_BUCKETS];
};

struct eb_arrivals {
	__u64 ios;
	__u64 sync;
	__u64 meta;
	__u64 ahead;
	__u64 runs[HIST_LOG2_BUCKETS]; /* bytes by run length: their sum is all bytes */
	/* Of these, requests that a plain disk refused because they must not wait. */
	__u64 refused_ios;
	__u64 refused_bytes;
};

/* Counters of one volume on one CPU. */
struct eb_vol_cpu {
	__u64 started[EB_DIRS]; /* requests; bytes on a disk that has requests */
	__u64 done[EB_DIRS];
	struct eb_arrivals arrivals[EB_DIRS];
	struct eb_flow path[EB_PATHS];
	/* The last arrival at a bcache volume, where the kernel does not stamp bios. */
	__u64 arrived_id;
	__u64 arrived_ns;
	__u64 flush;
	__u64 discard;
	__u64 gaps[HIST_LOG2_BUCKETS];
	__u64 gaps_ns[HIST_LOG2_BUCKETS];
	__u64 reason_ios[EB_REASONS];
	__u64 reason_bytes[EB_REASONS];
	__u64 lost_ring;
	__u64 lost_unmatched;
	__u64 lost_streams;
	__u64 lost_table;
	__u64 lost_reuse;
	__u64 lost_heat;
	__u64 lost_cgroups;
	__u64 lost_inodes;
	/* The last member: it is no counter. */
	struct reuse_ring reuse;
} __attribute__((aligned(64)));

#define EB_DESTAGE 0
#define EB_PROMOTION 1
#define EB_COPIES 2

struct eb_copied {
	__u64 ios;
	__u64 bytes;
};

/* Counters of one device on one CPU. */
struct eb_dev_cpu {
	/* Destage in bios: writes on a backing device, reads on a cache device. */
	__u64 queued_ios;
	__u64 queued_bytes;
	struct eb_copied copied[EB_COPIES]; /* done; promotion on a backing device only (dm) */
	struct eb_flow flow[EB_DIRS * EB_CLASSES]; /* direction * EB_CLASSES + class */
	__u64 lost_chain;
} __attribute__((aligned(64)));

/* All counters of one CPU, which a program finds once; aligned, so that no two CPUs write one line.
 */
struct eb_cpu {
	struct eb_vol_cpu volume[EB_VOLUMES];
	struct eb_dev_cpu device[EB_DEVICES];
};

#define EB_EDGE_BUSY 0	  /* the first arrival after an idle edge */
#define EB_EDGE_DRAINED 1 /* no destage of a paced volume is in flight any more */

/* 400 edges: there is one per gap and volume, and the loader reads them at once. */
#define EB_EDGE_RING_BYTES 16384

/* The only record that is pushed through the ring buffer. */
struct eb_edge {
	__u64 ns;
	__u64 gap_ns;
	__u32 volume;
	__u32 kind;
};
_Static_assert(sizeof(struct eb_edge) == 24, "hole in eb_edge");

#endif
