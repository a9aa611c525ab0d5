/* SPDX-License-Identifier: GPL-2.0-only */
/* What the objects of programs have in common. */
#ifndef EBBGATE_OBJECTS_H
#define EBBGATE_OBJECTS_H

#include <stdint.h>

#include "kernel_features.h"

struct bpf_object;

/* Makes an object that is not loaded yet use the maps of `owner`. Returns 0 or -errno. */
int share_maps(const struct bpf_object *object, const struct bpf_object *owner);

/*
 * Chooses the programs of an object that is not loaded yet: of those for one tracepoint that which
 * suits this kernel (compat.bpf.h).
 */
void choose_programs(struct bpf_object *object, const struct features *features);

/* Runs of a program, and of an object's programs, that the kernel skipped. */
uint64_t program_recursion_misses(int fd);
uint64_t object_recursion_misses(const struct bpf_object *object);

#endif
