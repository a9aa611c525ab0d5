// SPDX-License-Identifier: GPL-2.0-only
#include "dm_programs.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "endio.h"
#include "join.h"
#include "objects.h"
#include "block.skel.h"
#include "dm.skel.h"

/* Both objects have the same requests in flight. */
_Static_assert(offsetof(struct dm_bpf__bss, joins) == offsetof(struct block_bpf__bss, joins) &&
		       offsetof(struct dm_bpf__bss, heat) ==
			       offsetof(struct block_bpf__bss, heat) &&
		       offsetof(struct dm_bpf__bss, submitters) ==
			       offsetof(struct block_bpf__bss, submitters) &&
		       sizeof(struct dm_bpf__bss) == sizeof(struct block_bpf__bss),
	       "the two objects must have the same .bss");

static int open_and_load(struct probe *p)
{
	struct dm_bpf *dm = dm_bpf__open();
	int err;

	if (!dm)
		return -errno;
	dm->rodata->ncpu = p->ncpu;
	dm->rodata->flags = p->features.flags;
	choose_programs(dm->obj, &p->features);
	err = share_maps(dm->obj, p->block->obj);
	if (!err)
		err = bpf_map__reuse_fd(dm->maps.bss, bpf_map__fd(p->block->maps.bss));
	if (!err)
		err = dm_bpf__load(dm);
	if (err)
		dm_bpf__destroy(dm);
	else
		p->dm = dm;
	return err;
}

/* The modules dm_mod and dm_cache may be loaded at different times. */
static void find_class(struct probe *p)
{
	struct features *f = &p->features;
	char reason[REASON_BYTES];

	snprintf(f->dm_class, sizeof(f->dm_class), "ok");
	if (!resolve_endio(p, ENDIO_DM, reason) || !resolve_endio(p, ENDIO_DM_CACHE, reason))
		snprintf(f->dm_class, sizeof(f->dm_class), "missing: %s", reason);
}

int load_dm(struct probe *p)
{
	struct features *f = &p->features;
	int err = 0;

	if (!p->dm && !p->inherits) {
		find_dm_features(f);
		if (strcmp(f->dm_path, "ok"))
			return -ENOENT;
		err = open_and_load(p);
	}
	if (!p->inherits)
		snprintf(f->dm_path, sizeof(f->dm_path), "%s",
			 err ? "missing: this kernel does not load the programs for device-mapper"
			     : "ok");
	if (err)
		snprintf(f->dm_class, sizeof(f->dm_class), "%s", f->dm_path);
	else
		find_class(p);
	return err;
}

static const char *cannot_load(const struct probe *p)
{
	static char error[SIGNAL_BYTES + 64];

	snprintf(error, sizeof(error), "cannot load the programs for device-mapper: %s",
		 p->features.dm_path + strlen("missing: "));
	return error;
}

const char *attach_dm(struct probe *p)
{
	if (load_dm(p))
		return cannot_load(p);
	if (!p->dm_attached && dm_bpf__attach(p->dm))
		return "cannot attach to the block layer's tracepoints: restart the probe";
	p->dm_attached = true;
	return NULL;
}

void detach_dm(struct probe *p)
{
	if (p->dm_attached)
		dm_bpf__detach(p->dm);
	p->dm_attached = false;
}

void unload_dm(struct probe *p)
{
	dm_bpf__destroy(p->dm);
}

uint64_t dm_recursion_misses(const struct probe *p)
{
	return p->dm ? object_recursion_misses(p->dm->obj) : 0;
}
