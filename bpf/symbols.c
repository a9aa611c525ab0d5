// SPDX-License-Identifier: GPL-2.0-only
/* Addresses of the completion functions that tell who sent a bio. */
#include "probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Static functions: other modules may have one of the same name, so the module counts. */
static const struct {
	const char *name, *module;
	uint32_t modules; /* for whose volumes it is needed */
} endio_symbols[EB_ENDIOS] = {
	[EB_END_DIRTY] = { "dirty_endio", "[bcache]", ENDIO_BCACHE },
	[EB_END_READ_DIRTY] = { "read_dirty_endio", "[bcache]", ENDIO_BCACHE },
	[EB_END_BACKING] = { "backing_request_endio", "[bcache]", ENDIO_BCACHE },
	[EB_END_CACHE_READ] = { "bch_cache_read_endio", "[bcache]", ENDIO_BCACHE },
	[EB_END_DATA_INSERT] = { "bch_data_insert_endio", "[bcache]", ENDIO_BCACHE },
	[EB_END_DM_CLONE] = { "clone_endio", "[dm_mod]", ENDIO_DM },
	[EB_END_OVERWRITE] = { "overwrite_endio", "[dm_cache]", ENDIO_DM_CACHE },
	[EB_END_DM_IO] = { "endio", "[dm_mod]", ENDIO_DM },
	[EB_END_CHAIN] = { "bio_chain_endio", "", ENDIO_ALL },
};

static void match(const char *line, __u64 endio[EB_ENDIOS])
{
	char name[256], type, module[64] = "";
	uint64_t address;

	if (sscanf(line, "%lx %c %255s %63s", &address, &type, name, module) < 3)
		return;
	if ((type != 't' && type != 'T') || !address)
		return;
	for (int i = 0; i < EB_ENDIOS; i++)
		if (!strcmp(name, endio_symbols[i].name) &&
		    !strcmp(module, endio_symbols[i].module))
			endio[i] = address;
}

/*
 * NULL, or the name of a function that is needed for these modules and whose address is not to
 * be had (kptr_restrict, or the module is not loaded). What was known stays known.
 */
const char *read_endio(struct probe *p, uint32_t modules)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	__u64 *endio = p->shared->endio;
	char line[512];

	if (!f)
		return endio_symbols[0].name;
	while (fgets(line, sizeof(line), f))
		if (strstr(line, "endio"))
			match(line, endio);
	fclose(f);
	for (int i = 0; i < EB_ENDIOS; i++)
		if (endio[i] == EB_NO_ENDIO && endio_symbols[i].modules & modules)
			return endio_symbols[i].name;
	p->endio_modules |= modules;
	return NULL;
}
