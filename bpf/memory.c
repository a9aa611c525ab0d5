// SPDX-License-Identifier: GPL-2.0-only
#include "memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

void *map_memory(int fd, size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

int init_memory(struct probe *p, int edges_fd, ring_buffer_sample_fn on_push)
{
	if (!p->shared || !p->cpu || !p->streams || !p->dm_heat)
		return -errno;
	for (int i = 0; i < EB_ENDIOS; i++)
		p->shared->endio[i] = EB_NO_ENDIO;
	p->ring = ring_buffer__new(edges_fd, on_push, p, NULL);
	return p->ring ? 0 : -errno;
}

void clear_tables(struct probe *p, const struct volume *v)
{
	memset(p->streams[volume_index(p, v)], 0, sizeof(p->streams[0]));
	memset(volume_heat(p, v), 0, sizeof(struct heat_table));
	if (v->has_attribution)
		memset(volume_attribution(p, v), 0, sizeof(struct attribution));
}
