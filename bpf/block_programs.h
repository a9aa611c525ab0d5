/* SPDX-License-Identifier: GPL-2.0-only */
/* The programs at the block layer's tracepoints, and the maps that all programs share. */
#ifndef EBBGATE_BLOCK_PROGRAMS_H
#define EBBGATE_BLOCK_PROGRAMS_H

#include <bpf/libbpf.h>

#include "state.h"

/* Loads them, attaches block_bio_queue, and maps their memory. `on_push` gets what they push; its
 * context is the probe. Returns 0 or -errno.
 */
int load_block(struct probe *p, ring_buffer_sample_fn on_push);
void unload_block(struct probe *p);

/* The programs that tell ends run at each request of the machine: attached only where needed. */
int attach_ends(struct probe *p, struct program_needs needs);
void detach_ends(struct probe *p, struct program_needs needs);

uint64_t block_recursion_misses(const struct probe *p);

#endif
