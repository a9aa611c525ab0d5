// SPDX-License-Identifier: GPL-2.0-only
#include "symbols.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* They are static, and other modules may have functions of the same name. */
static const struct {
	const char *name, *module;
	uint32_t modules; /* ENDIO_*: whose volumes need it */
} functions[EB_ENDIOS] = {
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

static void count(struct symbol *symbol, uint64_t address)
{
	symbol->found++;
	symbol->address = address;
	symbol->hidden = !address;
}

/* What was read so far. `loaded`: the modules that are loaded and not built in. */
struct reading {
	struct symbol in_module[EB_ENDIOS], built_in[EB_ENDIOS];
	uint32_t loaded;
};

/* Reads one line: address, type, name and, for a function of a module, the module. */
static void match(const char *line, struct reading *reading)
{
	char name[256], type, module[64] = "";
	uint64_t address;

	if (sscanf(line, "%" SCNx64 " %c %255s %63s", &address, &type, name, module) < 3)
		return;
	if (type != 't' && type != 'T')
		return;
	for (int i = 0; i < EB_ENDIOS; i++) {
		bool in_module = *module && !strcmp(module, functions[i].module);

		if (in_module)
			reading->loaded |= functions[i].modules;
		if (strcmp(name, functions[i].name))
			continue;
		if (in_module)
			count(&reading->in_module[i], address);
		else if (!*module)
			count(&reading->built_in[i], address);
	}
}

/* A function of the kernel itself is used only if the module is not loaded. */
static struct symbol choose(const struct reading *reading, int i)
{
	bool loaded = *functions[i].module && reading->loaded & functions[i].modules;
	struct symbol chosen = loaded ? reading->in_module[i] : reading->built_in[i];

	if (chosen.found != 1 || chosen.hidden)
		chosen.address = EB_NO_ENDIO;
	return chosen;
}

int read_symbols(const char *path, struct symbols *symbols)
{
	struct reading reading = { 0 };
	FILE *f = fopen(path, "re");
	char line[512];
	int err;

	for (int i = 0; i < EB_ENDIOS; i++)
		symbols->symbol[i] = (struct symbol){ .address = EB_NO_ENDIO };
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f))
		if (strstr(line, "endio"))
			match(line, &reading);
	err = ferror(f) ? -EIO : 0;
	fclose(f);
	for (int i = 0; i < EB_ENDIOS; i++)
		symbols->symbol[i] = choose(&reading, i);
	return err;
}

void keep_known(struct symbols *now, const struct symbols *before, uint32_t modules)
{
	for (int i = 0; i < EB_ENDIOS; i++)
		if (now->symbol[i].hidden && functions[i].modules & modules)
			now->symbol[i] = before->symbol[i];
}

bool symbols_complete(const struct symbols *symbols, uint32_t modules, char *reason, size_t bytes)
{
	for (int i = 0; i < EB_ENDIOS; i++) {
		const struct symbol *s = &symbols->symbol[i];

		if (s->address != EB_NO_ENDIO || !(functions[i].modules & modules))
			continue;
		if (s->found > 1)
			snprintf(reason, bytes, "/proc/kallsyms has %" PRIu32 " functions named %s",
				 s->found, functions[i].name);
		else if (s->hidden)
			snprintf(reason, bytes,
				 "the kernel hides the address of %s: set "
				 "kernel.kptr_restrict to 1, then restart ebbgated",
				 functions[i].name);
		else
			snprintf(reason, bytes, "/proc/kallsyms has no function named %s",
				 functions[i].name);
		return false;
	}
	return true;
}
