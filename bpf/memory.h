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

void clear_streams(struct probe *p, uint32_t volume);

#endif
