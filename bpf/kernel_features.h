/* SPDX-License-Identifier: GPL-2.0-only */
/* Which signals this kernel can give, by its BTF and never by its version. */
#ifndef EBBGATE_KERNEL_FEATURES_H
#define EBBGATE_KERNEL_FEATURES_H

#include <stdbool.h>

#include "record.h"

#define REASON_BYTES 160
/* The state of a signal: `ok`, or `missing: ` and the reason. */
#define SIGNAL_BYTES (REASON_BYTES + 16)

struct features {
	char volume[SIGNAL_BYTES], path[SIGNAL_BYTES], bypass[SIGNAL_BYTES];
	char device[SIGNAL_BYTES], class[SIGNAL_BYTES];
	char dm_path[SIGNAL_BYTES], dm_class[SIGNAL_BYTES];
	bool btf;
	struct eb_flags flags;
	struct eb_dm_offsets dm; /* if dm_path is ok */
	/* The request queue is the first argument of block_bio_queue (compat.bpf.h). */
	bool queue_first;
	/* Each bio has the time of its arrival (compat.bpf.h). */
	bool stamped;
	/* bcache is loaded, but the kernel has no BTF of it. */
	bool bcache_raw;
	/* A bio does not tell the partition that it was sent to, nor md raid0 that it passed. */
	bool whole_disks;
};

void find_features(struct features *f);

/* The same for programs that are inherited. */
void find_inherited_features(struct features *f);

/* Look again at the modules, which may have been loaded since. */
void find_bcache_features(struct features *f);
void find_dm_features(struct features *f);

/* Where data_insert_op says that a write is a fill; false if BTF does not tell. */
bool find_fill_bit(__u64 *offset, __u64 *mask);

#endif
