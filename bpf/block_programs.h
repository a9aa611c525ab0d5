/* SPDX-License-Identifier: GPL-2.0-only */
/* The programs at the block layer's tracepoints, and the maps that all programs share. */
#ifndef EBBGATE_BLOCK_PROGRAMS_H
#define EBBGATE_BLOCK_PROGRAMS_H

#include <bpf/libbpf.h>

#include "state.h"

/* Loads and attaches them and maps their memory. `on_push` gets what they push; its context is
 * the probe. Returns 0 or -errno.
 */
int load_block(struct probe *p, ring_buffer_sample_fn on_push);
void unload_block(struct probe *p);

/* block_bio_complete costs something at each bio, so it is attached only when it is needed. */
int attach_bio_complete(struct probe *p);
void detach_bio_complete(struct probe *p);

uint64_t block_recursion_misses(const struct probe *p);

#endif
