// SPDX-License-Identifier: GPL-2.0-only
#include "device_mapper.h"

#include <stdio.h>
#include <string.h>

#include "endio.h"

/* The modules dm_mod and dm_cache may be loaded at different times. */
static void find_class(struct probe *p)
{
	struct features *f = &p->features;
	char reason[REASON_BYTES];

	snprintf(f->dm_class, sizeof(f->dm_class), "ok");
	if (!resolve_endio(p, ENDIO_DM, reason) || !resolve_endio(p, ENDIO_DM_CACHE, reason))
		snprintf(f->dm_class, sizeof(f->dm_class), "missing: %s", reason);
}

const char *prepare_dm(struct probe *p)
{
	static char error[SIGNAL_BYTES + 64];
	struct features *f = &p->features;

	if (!p->inherits && !p->shared->dm.clone) {
		find_dm_features(f);
		if (strcmp(f->dm_path, "ok")) {
			snprintf(error, sizeof(error), "cannot follow volumes of device-mapper: %s",
				 f->dm_path + strlen("missing: "));
			return error;
		}
		p->shared->dm = f->dm;
	}
	find_class(p);
	return NULL;
}
