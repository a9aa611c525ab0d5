// SPDX-License-Identifier: GPL-2.0-only
#include "block_programs.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "objects.h"
#include "stream.h"
#include "block.skel.h"

static void *map_memory(struct bpf_map *map)
{
	size_t bytes = (size_t)bpf_map__value_size(map) * bpf_map__max_entries(map);
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static int map_all(struct probe *p, ring_buffer_sample_fn on_push)
{
	p->shared = &p->block->data_shared->shared;
	p->vol_cpu = map_memory(p->block->maps.vol_cpu);
	p->dev_cpu = map_memory(p->block->maps.dev_cpu);
	for (int i = 0; i < EB_ENDIOS; i++)
		p->shared->endio[i] = EB_NO_ENDIO;
	p->ring = ring_buffer__new(bpf_map__fd(p->block->maps.edges), on_push, p, NULL);
	return p->vol_cpu && p->dev_cpu && p->ring ? 0 : -errno;
}

int load_block(struct probe *p, ring_buffer_sample_fn on_push)
{
	int err;

	p->block = block_bpf__open();
	if (!p->block)
		return -errno;
	p->block->rodata->ncpu = p->ncpu;
	p->block->rodata->flags = p->features.flags;
	bpf_program__set_autoattach(p->block->progs.block_bio_complete, false);
	bpf_map__set_max_entries(p->block->maps.vol_cpu, EB_VOLUMES * p->ncpu);
	bpf_map__set_max_entries(p->block->maps.dev_cpu, EB_DEVICES * p->ncpu);
	err = block_bpf__load(p->block);
	if (!err)
		err = block_bpf__attach(p->block);
	return err ? err : map_all(p, on_push);
}

void unload_block(struct probe *p)
{
	ring_buffer__free(p->ring);
	detach_bio_complete(p);
	block_bpf__destroy(p->block);
}

int attach_bio_complete(struct probe *p)
{
	if (!p->bio_complete)
		p->bio_complete = bpf_program__attach(p->block->progs.block_bio_complete);
	return p->bio_complete ? 0 : -errno;
}

void detach_bio_complete(struct probe *p)
{
	bpf_link__destroy(p->bio_complete);
	p->bio_complete = NULL;
}

void clear_streams(struct probe *p, uint32_t volume)
{
	memset(p->block->bss->streams[volume], 0, sizeof(p->block->bss->streams[volume]));
}

uint64_t block_recursion_misses(const struct probe *p)
{
	return object_recursion_misses(p->block->obj);
}
