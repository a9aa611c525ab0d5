// SPDX-License-Identifier: GPL-2.0-only
/* Whose completion functions are known. A module that is loaded again has other addresses. */
#include "probe.h"

#include <stdio.h>
#include <sys/stat.h>

static const struct {
	uint32_t bit;
	const char *folder;
} modules[ENDIO_MODULES] = {
	{ ENDIO_BCACHE, "/sys/module/bcache" },
	{ ENDIO_DM, "/sys/module/dm_mod" },
	{ ENDIO_DM_CACHE, "/sys/module/dm_cache" },
	{ ENDIO_KERNEL, "" },
};

/* Another number each time that the module is loaded; 0 where it is none. */
static uint64_t identity(const char *folder)
{
	struct stat st;

	return stat(folder, &st) ? 0 : st.st_ino;
}

bool endio_known(const struct probe *p, uint32_t wanted)
{
	if ((p->endio_modules & wanted) != wanted)
		return false;
	for (int i = 0; i < ENDIO_MODULES; i++)
		if (modules[i].bit & wanted && identity(modules[i].folder) != p->module_id[i])
			return false;
	return true;
}

static void read_all(struct probe *p)
{
	struct symbols now;
	uint32_t kept = 0;
	char why[WHY_BYTES];

	/* The identities first: of a module that comes meanwhile they are too old, and read again.
	 */
	for (int i = 0; i < ENDIO_MODULES; i++) {
		uint64_t id = identity(modules[i].folder);

		if (p->endio_modules & modules[i].bit && id == p->module_id[i])
			kept |= modules[i].bit;
		p->module_id[i] = id;
	}
	(void)read_symbols(KALLSYMS, &now);
	keep_known(&now, &p->symbols, kept);
	p->symbols = now;
	p->endio_modules = 0;
	for (int i = 0; i < EB_ENDIOS; i++)
		p->shared->endio[i] = now.symbol[i].address;
	for (int i = 0; i < ENDIO_MODULES; i++)
		if (symbols_complete(&now, modules[i].bit, why, sizeof(why)))
			p->endio_modules |= modules[i].bit;
}

bool learn_endio(struct probe *p, uint32_t wanted, char why[WHY_BYTES])
{
	if (endio_known(p, wanted))
		return true;
	read_all(p);
	return symbols_complete(&p->symbols, wanted, why, WHY_BYTES);
}
