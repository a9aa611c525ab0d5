// SPDX-License-Identifier: GPL-2.0-only
#include "endio.h"

#include <sys/stat.h>

static const struct {
	uint32_t bit;
	const char *folder;
} folders[ENDIO_MODULES] = {
	{ ENDIO_BCACHE, "/sys/module/bcache" },
	{ ENDIO_DM, "/sys/module/dm_mod" },
	{ ENDIO_DM_CACHE, "/sys/module/dm_cache" },
	{ ENDIO_KERNEL, "" },
};

/* Another number each time that the module is loaded; 0 if it is not a module here. */
static uint64_t identity(const char *folder)
{
	struct stat st;

	return stat(folder, &st) ? 0 : st.st_ino;
}

bool endio_known(const struct probe *p, uint32_t modules)
{
	if ((p->endio_modules & modules) != modules)
		return false;
	for (int i = 0; i < ENDIO_MODULES; i++)
		if (folders[i].bit & modules && identity(folders[i].folder) != p->module_id[i])
			return false;
	return true;
}

static void read_all(struct probe *p)
{
	struct symbols now;
	uint32_t kept = 0;
	char reason[REASON_BYTES];

	/* The identities are read first: if a module is loaded meanwhile, its identity is too old
	 * and its addresses are read again.
	 */
	for (int i = 0; i < ENDIO_MODULES; i++) {
		uint64_t id = identity(folders[i].folder);

		if (p->endio_modules & folders[i].bit && id == p->module_id[i])
			kept |= folders[i].bit;
		p->module_id[i] = id;
	}
	(void)read_symbols(KALLSYMS, &now);
	keep_known(&now, &p->symbols, kept);
	p->symbols = now;
	p->endio_modules = 0;
	for (int i = 0; i < EB_ENDIOS; i++)
		p->shared->endio[i] = now.symbol[i].address;
	for (int i = 0; i < ENDIO_MODULES; i++)
		if (symbols_complete(&now, folders[i].bit, reason, sizeof(reason)))
			p->endio_modules |= folders[i].bit;
}

bool resolve_endio(struct probe *p, uint32_t modules, char reason[REASON_BYTES])
{
	if (endio_known(p, modules))
		return true;
	read_all(p);
	return symbols_complete(&p->symbols, modules, reason, REASON_BYTES);
}
