// SPDX-License-Identifier: GPL-2.0-only
/* Addresses of the completion functions that tell who sent a bio. */
#include "probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Static functions: other modules may have one of the same name, so the module counts. */
static const struct {
	const char *name, *module;
} endio_symbols[EB_ENDIOS] = {
	[EB_END_DIRTY] = { "dirty_endio", "[bcache]" },
	[EB_END_READ_DIRTY] = { "read_dirty_endio", "[bcache]" },
	[EB_END_BACKING] = { "backing_request_endio", "[bcache]" },
	[EB_END_CACHE_READ] = { "bch_cache_read_endio", "[bcache]" },
	[EB_END_DATA_INSERT] = { "bch_data_insert_endio", "[bcache]" },
	[EB_END_CHAIN] = { "bio_chain_endio", "" },
};

static void match(const char *line, __u64 endio[EB_ENDIOS])
{
	char name[256], type, module[64] = "";
	uint64_t address;

	if (sscanf(line, "%lx %c %255s %63s", &address, &type, name, module) < 3)
		return;
	if (type != 't' && type != 'T')
		return;
	for (int i = 0; i < EB_ENDIOS; i++)
		if (!strcmp(name, endio_symbols[i].name) &&
		    !strcmp(module, endio_symbols[i].module))
			endio[i] = address;
}

/* NULL, or the name of a function whose address is not to be had (kptr_restrict). */
const char *read_endio(__u64 endio[EB_ENDIOS])
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[512];

	memset(endio, 0, EB_ENDIOS * sizeof(endio[0]));
	if (!f)
		return endio_symbols[0].name;
	while (fgets(line, sizeof(line), f))
		if (strstr(line, "endio"))
			match(line, endio);
	fclose(f);
	for (int i = 0; i < EB_ENDIOS; i++)
		if (!endio[i])
			return endio_symbols[i].name;
	return NULL;
}
