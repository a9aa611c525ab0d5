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
	char why[WHY_BYTES];

	p->endio_modules = 0;
	/* The identities first: of a module that comes meanwhile they are too old, and read again.
	 */
	for (int i = 0; i < ENDIO_MODULES; i++)
		p->module_id[i] = identity(modules[i].folder);
	(void)read_symbols(KALLSYMS, &p->symbols);
	for (int i = 0; i < EB_ENDIOS; i++)
		p->shared->endio[i] = p->symbols.symbol[i].address;
	for (int i = 0; i < ENDIO_MODULES; i++)
		if (symbols_complete(&p->symbols, modules[i].bit, why, sizeof(why)))
			p->endio_modules |= modules[i].bit;
}

bool learn_endio(struct probe *p, uint32_t wanted, char why[WHY_BYTES])
{
	if (endio_known(p, wanted))
		return true;
	read_all(p);
	return symbols_complete(&p->symbols, wanted, why, WHY_BYTES);
}
