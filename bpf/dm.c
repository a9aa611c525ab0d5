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

int prepare_dm(struct probe *p)
{
	struct features *f = &p->features;
	const char *missing;
	int err = p->dm ? 0 : load(p);

	snprintf(f->dm_path, sizeof(f->dm_path), "%s",
		 err ? "missing: the programs for device-mapper do not load here" : "ok");
	snprintf(f->dm_class, sizeof(f->dm_class), "%s", f->dm_path);
	if (err)
		return err;
	missing = read_endio(p, ENDIO_DM);
	if (!missing)
		missing = read_endio(p, ENDIO_DM_CACHE);
	if (missing)
		snprintf(f->dm_class, sizeof(f->dm_class),
			 "missing: no address of %s in /proc/kallsyms", missing);
	return 0;
}

int attach_dm(struct probe *p)
{
	int err = dm_bpf__attach(p->dm);

	p->dm_attached = !err;
	return err;
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
