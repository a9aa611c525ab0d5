// SPDX-License-Identifier: GPL-2.0-only
#include "block_programs.h"

#include <errno.h>

#include "memory.h"
#include "join.h"
#include "objects.h"
#include "block.skel.h"

static void *map_whole(const struct bpf_map *map)
{
	return map_memory(bpf_map__fd(map),
			  (size_t)bpf_map__value_size(map) * bpf_map__max_entries(map));
}

static int map_all(struct probe *p, ring_buffer_sample_fn on_push)
{
	p->shared = &p->block->data_shared->shared;
	p->streams = p->block->bss->streams;
	p->dm_heat = p->block->bss->heat;
	p->attribution = map_whole(p->block->maps.attributions);
	p->cpu = map_whole(p->block->maps.counters);
	if (!p->attribution)
		return -errno;
	return init_memory(p, bpf_map__fd(p->block->maps.edges), on_push);
}

int load_block(struct probe *p, ring_buffer_sample_fn on_push)
{
	int err;

	p->block = block_bpf__open();
	if (!p->block)
		return -errno;
	p->block->rodata->ncpu = p->ncpu;
	p->block->rodata->flags = p->features.flags;
	choose_programs(p->block->obj, &p->features);
	bpf_program__set_autoattach(p->block->progs.block_rq_complete, false);
	bpf_program__set_autoattach(p->block->progs.block_bio_complete, false);
	bpf_map__set_max_entries(p->block->maps.counters, p->ncpu);
	err = block_bpf__load(p->block);
	if (!err)
		err = block_bpf__attach(p->block);
	return err ? err : map_all(p, on_push);
}

void unload_block(struct probe *p)
{
	ring_buffer__free(p->ring);
	detach_ends(p, (struct program_needs){ 0 });
	block_bpf__destroy(p->block);
}

static int attach_if(bool needed, struct bpf_link **link, const struct bpf_program *program)
{
	if (needed && !*link)
		*link = bpf_program__attach(program);
	return needed && !*link ? -errno : 0;
}

int attach_ends(struct probe *p, struct program_needs needs)
{
	int err = attach_if(needs.rq_complete, &p->rq_complete, p->block->progs.block_rq_complete);

	if (err)
		return err;
	return attach_if(needs.bio_complete, &p->bio_complete, p->block->progs.block_bio_complete);
}

static void detach_unless(bool needed, struct bpf_link **link)
{
	if (needed)
		return;
	bpf_link__destroy(*link);
	*link = NULL;
}

void detach_ends(struct probe *p, struct program_needs needs)
{
	detach_unless(needs.rq_complete, &p->rq_complete);
	detach_unless(needs.bio_complete, &p->bio_complete);
}

uint64_t block_recursion_misses(const struct probe *p)
{
	return object_recursion_misses(p->block->obj);
}
