// SPDX-License-Identifier: GPL-2.0-only
#include "bcache_programs.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "endio.h"
#include "heat.h"
#include "join.h"
#include "objects.h"
#include "block.skel.h"
#include "bcache.skel.h"

static int open_and_load(struct probe *p)
{
	struct bcache_bpf *bcache = bcache_bpf__open();
	int err;

	if (!bcache)
		return -errno;
	bcache->rodata->ncpu = p->ncpu;
	bcache->rodata->flags = p->features.flags;
	choose_programs(bcache->obj, &p->features);
	err = share_maps(bcache->obj, p->block->obj);
	if (!err)
		err = bcache_bpf__load(bcache);
	if (err) {
		bcache_bpf__destroy(bcache);
		return err;
	}
	p->bcache = bcache;
	p->bcache_heat = bcache->bss->heat;
	return 0;
}

static void find_class(struct probe *p)
{
	struct features *f = &p->features;
	char reason[REASON_BYTES];

	if (endio_known(p, ENDIO_BCACHE))
		return;
	snprintf(f->class, sizeof(f->class), "ok");
	if (!find_fill_bit(&p->shared->fill_offset, &p->shared->fill_mask))
		snprintf(f->class, sizeof(f->class), "ok, but fills count as foreground writes");
	if (!resolve_endio(p, ENDIO_BCACHE, reason))
		snprintf(f->class, sizeof(f->class), "missing: %s", reason);
}

int load_bcache(struct probe *p)
{
	struct features *f = &p->features;
	int err = 0;

	if (!p->bcache && !p->inherits) {
		find_bcache_features(f);
		if (strcmp(f->path, "ok"))
			return -ENOENT;
		err = open_and_load(p);
	}
	snprintf(f->path, sizeof(f->path), "%s",
		 err ? "missing: this kernel does not load the programs for bcache" : "ok");
	snprintf(f->bypass, sizeof(f->bypass), "%s", f->path);
	if (err)
		snprintf(f->class, sizeof(f->class), "%s", f->path);
	else
		find_class(p);
	return err;
}

static const char *cannot_load(const struct probe *p)
{
	static char error[SIGNAL_BYTES + 64];

	snprintf(error, sizeof(error), "cannot load the programs for bcache: %s",
		 p->features.path + strlen("missing: "));
	return error;
}

const char *attach_bcache(struct probe *p)
{
	if (load_bcache(p))
		return cannot_load(p);
	if (!p->bcache_attached && bcache_bpf__attach(p->bcache))
		return "cannot attach to bcache's tracepoints: restart the probe";
	p->bcache_attached = true;
	return NULL;
}

void detach_bcache(struct probe *p)
{
	if (p->bcache_attached)
		bcache_bpf__detach(p->bcache);
	p->bcache_attached = false;
}

void unload_bcache(struct probe *p)
{
	bcache_bpf__destroy(p->bcache);
}

uint64_t bcache_recursion_misses(const struct probe *p)
{
	return p->bcache ? object_recursion_misses(p->bcache->obj) : 0;
}
