/* SPDX-License-Identifier: GPL-2.0-only */
/* The programs for volumes of bcache: loaded once, attached while there is such a volume. */
#ifndef EBBGATE_BCACHE_PROGRAMS_H
#define EBBGATE_BCACHE_PROGRAMS_H

#include "state.h"

/* Loads them if they are not loaded, and notes in the features what is missing. 0 or -errno. */
int load_bcache(struct probe *p);

/* Loads and attaches them. Returns NULL or an error text. */
const char *attach_bcache(struct probe *p);
void detach_bcache(struct probe *p);
void unload_bcache(struct probe *p);

uint64_t bcache_recursion_misses(const struct probe *p);

#endif
