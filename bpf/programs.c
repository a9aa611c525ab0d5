// SPDX-License-Identifier: GPL-2.0-only
#include "programs.h"

#include <errno.h>
#include <string.h>

#include "bcache_programs.h"
#include "block_programs.h"
#include "caps.h"
#include "device_mapper.h"
#include "inherited.h"

int load_programs(struct probe *p, ring_buffer_sample_fn on_push)
{
	int err;

	if (p->inherits)
		err = attach_inherited(p, (struct program_needs){ 0 }) ? -EIO : 0;
	else
		err = load_block(p, on_push);
	if (err)
		return err;
	/* A failure of these is shown in the features. */
	if (!strcmp(p->features.path, "ok"))
		(void)load_bcache(p);
	if (!strcmp(p->features.dm_path, "ok"))
		(void)prepare_dm(p);
	return 0;
}

void unload_programs(struct probe *p)
{
	/* What was inherited ends with the process. */
	if (p->inherits)
		return;
	unload_bcache(p);
	unload_block(p);
}

bool loads_more_programs(const struct probe *p)
{
	return p->inherits || !p->bcache;
}

static const char *attach_loaded(struct probe *p, struct program_needs needs)
{
	const char *error = attach_inherited(p, needs);

	if (!error && needs.bcache)
		(void)load_bcache(p);
	if (!error && needs.dm)
		(void)prepare_dm(p);
	return error;
}

const char *attach_programs(struct probe *p, struct program_needs needs)
{
	const char *error = NULL;

	if (p->inherits)
		return attach_loaded(p, needs);
	if (needs.bcache)
		error = attach_bcache(p);
	if (!error && needs.dm)
		error = prepare_dm(p);
	if (needs.bcache || needs.dm)
		(void)drop_capabilities(loads_more_programs(p));
	if (!error && attach_ends(p, needs))
		error = "cannot attach to the block layer's tracepoints: restart the probe";
	return error;
}

void detach_programs(struct probe *p, struct program_needs needs)
{
	if (p->inherits) {
		detach_inherited(p, needs);
		return;
	}
	if (!needs.bcache)
		detach_bcache(p);
	detach_ends(p, needs);
}

uint64_t recursion_misses(const struct probe *p)
{
	if (p->inherits)
		return inherited_recursion_misses(p);
	return block_recursion_misses(p) + bcache_recursion_misses(p);
}
