/* SPDX-License-Identifier: GPL-2.0-only */
/* The memory of the maps, which the programs and the loader share. */
#ifndef EBBGATE_MEMORY_H
#define EBBGATE_MEMORY_H

#include <bpf/libbpf.h>

#include "state.h"

/* Maps the memory of an array; NULL with errno. */
void *map_memory(int fd, size_t bytes);

/* Prepares the shared memory and the ring of edges. Returns 0 or -errno. */
int init_memory(struct probe *p, int edges_fd, ring_buffer_sample_fn on_push);

/* Forgets the streams and the misses of a volume, also by who made them. */
void clear_tables(struct probe *p, const struct volume *v);

#endif
