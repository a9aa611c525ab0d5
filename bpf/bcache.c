// SPDX-License-Identifier: GPL-2.0-only
/* The programs for volumes of bcache: loaded once, attached while there is such a volume. */
#include "probe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>

#include "stream.h"
#include "block.skel.h"
#include "bcache.skel.h"

static int share_maps(struct probe *p, struct bcache_bpf *bcache)
{
	struct {
		struct bpf_map *ours, *theirs;
	} pairs[] = {
		{ p->block->maps.vol_cpu, bcache->maps.vol_cpu },
		{ p->block->maps.dev_cpu, bcache->maps.dev_cpu },
		{ p->block->maps.data_shared, bcache->maps.data_shared },
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		int err = bpf_map__reuse_fd(pairs[i].theirs, bpf_map__fd(pairs[i].ours));

		if (err)
			return err;
	}
	return 0;
}

static int load(struct probe *p)
{
	struct bcache_bpf *bcache = bcache_bpf__open();
	int err;

	if (!bcache)
		return -errno;
	bcache->rodata->ncpu = p->ncpu;
	bcache->rodata->flags = p->features.flags;
	err = share_maps(p, bcache);
	if (!err)
		err = bcache_bpf__load(bcache);
	if (err)
		bcache_bpf__destroy(bcache);
	else
		p->bcache = bcache;
	return err;
}

static void find_class(struct probe *p)
{
	struct features *f = &p->features;
	char why[WHY_BYTES];

	if (endio_known(p, ENDIO_BCACHE))
		return;
	snprintf(f->class, sizeof(f->class), "ok");
	if (!find_fill_bit(&p->shared->fill_offset, &p->shared->fill_mask))
		snprintf(f->class, sizeof(f->class), "ok, but fills count as foreground writes");
	if (!learn_endio(p, ENDIO_BCACHE, why))
		snprintf(f->class, sizeof(f->class), "missing: %s", why);
}

int prepare_bcache(struct probe *p)
{
	struct features *f = &p->features;
	int err = p->bcache ? 0 : load(p);

	snprintf(f->path, sizeof(f->path), "%s",
		 err ? "missing: the programs for bcache do not load here" : "ok");
	snprintf(f->bypass, sizeof(f->bypass), "%s", f->path);
	if (err)
		snprintf(f->class, sizeof(f->class), "%s", f->path);
	else
		find_class(p);
	return err;
}

static int attach(struct probe *p)
{
	int err = bcache_bpf__attach(p->bcache);

	p->bcache_attached = !err;
	return err;
}

const char *ready_bcache(struct probe *p)
{
	int err = prepare_bcache(p);

	keep_capabilities(p);
	if (err)
		return "cannot load the bcache programs (see stderr): is the module loaded?";
	if (!p->bcache_attached && attach(p))
		return "cannot attach to bcache's tracepoints: restart the probe";
	return NULL;
}

void detach_bcache(struct probe *p)
{
	bcache_bpf__detach(p->bcache);
	p->bcache_attached = false;
}

void unload_bcache(struct probe *p)
{
	bcache_bpf__destroy(p->bcache);
}

uint64_t missed_bcache_runs(const struct probe *p)
{
	return p->bcache ? missed(p->bcache->obj) : 0;
}
