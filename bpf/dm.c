// SPDX-License-Identifier: GPL-2.0-only
/* The programs for volumes of device-mapper: loaded once, attached while there is such a volume. */
#include "probe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>

#include "stream.h"
#include "block.skel.h"
#include "dm.skel.h"

static int share_maps(struct probe *p, struct dm_bpf *dm)
{
	struct {
		struct bpf_map *ours, *theirs;
	} pairs[] = {
		{ p->block->maps.vol_cpu, dm->maps.vol_cpu },
		{ p->block->maps.dev_cpu, dm->maps.dev_cpu },
		{ p->block->maps.edges, dm->maps.edges },
		{ p->block->maps.data_shared, dm->maps.data_shared },
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
	struct dm_bpf *dm = dm_bpf__open();
	int err;

	if (!dm)
		return -errno;
	dm->rodata->ncpu = p->ncpu;
	dm->rodata->flags = p->features.flags;
	err = share_maps(p, dm);
	if (!err)
		err = dm_bpf__load(dm);
	if (err)
		dm_bpf__destroy(dm);
	else
		p->dm = dm;
	return err;
}

static void find_class(struct probe *p)
{
	struct features *f = &p->features;
	char why[WHY_BYTES];

	snprintf(f->dm_class, sizeof(f->dm_class), "ok");
	if (!learn_endio(p, ENDIO_DM, why) || !learn_endio(p, ENDIO_DM_CACHE, why))
		snprintf(f->dm_class, sizeof(f->dm_class), "missing: %s", why);
}

int prepare_dm(struct probe *p)
{
	struct features *f = &p->features;
	int err = p->dm ? 0 : load(p);

	snprintf(f->dm_path, sizeof(f->dm_path), "%s",
		 err ? "missing: the programs for device-mapper do not load here" : "ok");
	if (err)
		snprintf(f->dm_class, sizeof(f->dm_class), "%s", f->dm_path);
	else
		find_class(p);
	return err;
}

static int attach(struct probe *p)
{
	int err = dm_bpf__attach(p->dm);

	p->dm_attached = !err;
	return err;
}

const char *ready_dm(struct probe *p)
{
	int err = prepare_dm(p);

	keep_capabilities(p);
	if (err)
		return "cannot load the programs for device-mapper (see stderr): is it there?";
	if (!p->dm_attached && attach(p))
		return "cannot attach to the block layer's tracepoints: restart the probe";
	return NULL;
}

void detach_dm(struct probe *p)
{
	dm_bpf__detach(p->dm);
	p->dm_attached = false;
}

void unload_dm(struct probe *p)
{
	dm_bpf__destroy(p->dm);
}

uint64_t missed_dm_runs(const struct probe *p)
{
	return p->dm ? missed(p->dm->obj) : 0;
}
