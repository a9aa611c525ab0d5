/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Maps and programs that were made before the probe was started, by their descriptors: the bcc
 * probe compiles and loads them and becomes this program (--maps, --programs).
 */
#ifndef EBBGATE_INHERITED_H
#define EBBGATE_INHERITED_H

#include <bpf/libbpf.h>

#include "state.h"

/* Prints name, type, key size, value size, entries and flags of each map, one in a line. */
void print_maps(const struct probe *p);

/* Takes maps as in "counters=5,edges=7", checks and maps them. Returns false after a message. */
bool inherit_maps(struct probe *p, const char *list, ring_buffer_sample_fn on_push);

/* Takes programs by the tracepoint, as in "block_bio_queue=9,bcache_read=12". */
bool inherit_programs(struct probe *p, const char *list);

/* Attaches block_bio_queue and what else is needed. Returns NULL or an error text. */
const char *attach_inherited(struct probe *p, struct program_needs needs);

/* Detaches those that are not needed. */
void detach_inherited(struct probe *p, struct program_needs needs);

uint64_t inherited_recursion_misses(const struct probe *p);

#endif
