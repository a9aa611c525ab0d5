/* SPDX-License-Identifier: GPL-2.0-only */
/* Addresses of the completion functions that tell who sent a bio, from the text of kallsyms. */
#ifndef EBBGATE_SYMBOLS_H
#define EBBGATE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record.h"

#define KALLSYMS "/proc/kallsyms"

/* The modules whose completion functions are read, as bits. */
#define ENDIO_BCACHE 1
#define ENDIO_DM 2
#define ENDIO_DM_CACHE 4
#define ENDIO_KERNEL 8 /* no module: functions of the kernel itself */
#define ENDIO_ALL 15

/* What /proc/kallsyms has of one function. */
struct symbol {
	uint64_t address; /* EB_NO_ENDIO if it is not known */
	uint32_t found;	  /* how many functions of this name there are */
	bool hidden;	  /* its address is shown as 0 (kptr_restrict) */
};

struct symbols {
	struct symbol symbol[EB_ENDIOS];
};

/*
 * Takes a function from its module; if the module is not loaded, from the kernel itself, since the
 * module may be built in. If there are two of one name, neither is used. Returns 0, or -errno if
 * the file cannot be read; then no function has an address.
 */
int read_symbols(const char *path, struct symbols *symbols);

/*
 * Takes addresses that are hidden now from an earlier reading, for modules that were not loaded
 * again since: kptr_restrict may have been raised, but their functions have not moved.
 */
void keep_known(struct symbols *now, const struct symbols *before, uint32_t modules);

/* False with a reason if a function that is needed for these modules has no address. */
bool symbols_complete(const struct symbols *symbols, uint32_t modules, char *reason, size_t bytes);

#endif
