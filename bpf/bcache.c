// SPDX-License-Identifier: GPL-2.0-only
/* What is needed once bcache is there: its programs, its symbols, the place of its bits. */
#include "probe.h"

#include <stdio.h>

int prepare_bcache(struct probe *p)
{
	struct features *f = &p->features;
	const char *missing;
	int err = load_bcache(p);

	if (err) {
		snprintf(f->path, sizeof(f->path),
			 "missing: the programs for bcache do not load here");
		snprintf(f->bypass, sizeof(f->bypass), "%s", f->path);
		snprintf(f->class, sizeof(f->class), "%s", f->path);
		return err;
	}
	snprintf(f->path, sizeof(f->path), "ok");
	snprintf(f->bypass, sizeof(f->bypass), "ok");
	snprintf(f->class, sizeof(f->class), "ok");
	if (!find_fill_bit(&p->shared->fill_offset, &p->shared->fill_mask))
		snprintf(f->class, sizeof(f->class), "ok, but fills count as foreground writes");
	missing = read_endio(p, ENDIO_BCACHE);
	if (missing)
		snprintf(f->class, sizeof(f->class), "missing: no address of %s in /proc/kallsyms",
			 missing);
	return 0;
}
