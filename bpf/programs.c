// SPDX-License-Identifier: GPL-2.0-only
#include "programs.h"

#include <string.h>

#include "bcache_programs.h"
#include "block_programs.h"
#include "caps.h"
#include "dm_programs.h"

int load_programs(struct probe *p, ring_buffer_sample_fn on_push)
{
	int err = load_block(p, on_push);

	if (err)
		return err;
	/* A failure of these is shown in the features. */
	if (!strcmp(p->features.path, "ok"))
		(void)load_bcache(p);
	if (!strcmp(p->features.dm_path, "ok"))
		(void)load_dm(p);
	return 0;
}

void unload_programs(struct probe *p)
{
	unload_bcache(p);
	unload_dm(p);
	unload_block(p);
}

bool loads_more_programs(const struct probe *p)
{
	return !p->bcache || !p->dm;
}

const char *attach_programs(struct probe *p, struct program_needs needs)
{
	const char *error = NULL;

	if (needs.bcache)
		error = attach_bcache(p);
	if (!error && needs.dm)
		error = attach_dm(p);
	if (needs.bcache || needs.dm)
		(void)drop_capabilities(loads_more_programs(p));
	if (!error && needs.bio_complete && attach_bio_complete(p))
		error = "cannot attach to the block layer's tracepoints: restart the probe";
	return error;
}

void detach_programs(struct probe *p, struct program_needs needs)
{
	if (!needs.bcache)
		detach_bcache(p);
	if (!needs.dm)
		detach_dm(p);
	if (!needs.bio_complete)
		detach_bio_complete(p);
}

uint64_t recursion_misses(const struct probe *p)
{
	return block_recursion_misses(p) + bcache_recursion_misses(p) + dm_recursion_misses(p);
}
