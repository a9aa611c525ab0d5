// SPDX-License-Identifier: GPL-2.0-only
/* Programs and maps: load, attach, map into our memory. */
#include "probe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "stream.h"
#include "block.skel.h"

static void *map_memory(struct bpf_map *map)
{
	size_t bytes = (size_t)bpf_map__value_size(map) * bpf_map__max_entries(map);
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	return memory == MAP_FAILED ? NULL : memory;
}

void forget_streams(struct probe *p, uint32_t volume)
{
	memset(p->block->bss->streams[volume], 0, sizeof(p->block->bss->streams[volume]));
}

static int map_all(struct probe *p)
{
	p->shared = &p->block->data_shared->shared;
	p->vol_cpu = map_memory(p->block->maps.vol_cpu);
	p->dev_cpu = map_memory(p->block->maps.dev_cpu);
	for (int i = 0; i < EB_ENDIOS; i++)
		p->shared->endio[i] = EB_NO_ENDIO;
	p->ring = ring_buffer__new(bpf_map__fd(p->block->maps.edges), on_edge, p, NULL);
	return p->vol_cpu && p->dev_cpu && p->ring ? 0 : -errno;
}

int load_block(struct probe *p)
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
	return err ? err : map_all(p);
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

uint64_t missed(const struct bpf_object *object)
{
	struct bpf_program *program;
	uint64_t sum = 0;

	bpf_object__for_each_program(program, object)
	{
		struct bpf_prog_info info = { 0 };
		__u32 bytes = sizeof(info);

		if (!bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &bytes))
			sum += info.recursion_misses;
	}
	return sum;
}

uint64_t missed_runs(const struct probe *p)
{
	return missed(p->block->obj) + missed_bcache_runs(p) + missed_dm_runs(p);
}

void unload(struct probe *p)
{
	ring_buffer__free(p->ring);
	detach_bio_complete(p);
	unload_bcache(p);
	unload_dm(p);
	block_bpf__destroy(p->block);
}
