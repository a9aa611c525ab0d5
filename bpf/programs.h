/* SPDX-License-Identifier: GPL-2.0-only */
/* All programs: loaded at start or with the first volume that needs them, attached while needed. */
#ifndef EBBGATE_PROGRAMS_H
#define EBBGATE_PROGRAMS_H

#include <bpf/libbpf.h>

#include "state.h"

/* Loads what this kernel has the modules for. Returns 0 or -errno. */
int load_programs(struct probe *p, ring_buffer_sample_fn on_push);
void unload_programs(struct probe *p);

/* Whether a volume that is added later may load programs. */
bool loads_more_programs(const struct probe *p);

/* Attaches what a volume needs, and loads it if necessary. Returns NULL or an error text. */
const char *attach_programs(struct probe *p, struct program_needs needs);

/* Detaches what is not needed: it would cost something at each bio, and hold the modules. */
void detach_programs(struct probe *p, struct program_needs needs);

/* Runs of all programs that the kernel skipped because one was running on that CPU. */
uint64_t recursion_misses(const struct probe *p);

#endif
