/* SPDX-License-Identifier: GPL-2.0-only */
/* Addresses of the completion functions that tell who sent a bio, from the text of kallsyms. */
#ifndef EBBGATE_SYMBOLS_H
#define EBBGATE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record.h"

#define KALLSYMS "/proc/kallsyms"

/* Bits of the modules whose functions are looked for. */
#define ENDIO_BCACHE 1
#define ENDIO_DM 2
#define ENDIO_DM_CACHE 4
#define ENDIO_KERNEL 8 /* none: what the kernel itself has */
#define ENDIO_ALL 15

/* What the text says of one function. */
struct symbol {
	uint64_t address; /* where it can be told; else EB_NO_ENDIO */
	uint32_t found;	  /* how many functions of this name may be meant */
	bool hidden;	  /* it is there, but its address is shown as 0 (kptr_restrict) */
};

struct symbols {
	struct symbol symbol[EB_ENDIOS];
};

/*
 * A function of the expected module counts; where the module is not loaded, a function of the
 * kernel itself does, since the module may be built in. Two of one name cannot be told apart: no
 * address. -errno when the file cannot be read; then no function has an address.
 */
int read_symbols(const char *path, struct symbols *symbols);

/*
 * Takes over from an earlier reading what is hidden now, of modules that were not loaded again
 * since: kptr_restrict may have been raised meanwhile, but their functions are where they were.
 */
void keep_known(struct symbols *now, const struct symbols *before, uint32_t modules);

/* True, or false with a reason: a function that is needed for these modules has no address. */
bool symbols_complete(const struct symbols *symbols, uint32_t modules, char *reason, size_t bytes);

#endif
