/* SPDX-License-Identifier: GPL-2.0-only */
/* The programs for volumes of device-mapper: loaded once, attached while there is such a volume. */
#ifndef EBBGATE_DM_PROGRAMS_H
#define EBBGATE_DM_PROGRAMS_H

#include "state.h"

/* Loads them if they are not loaded, and notes in the features what is missing. 0 or -errno. */
int load_dm(struct probe *p);

/* Loads and attaches them. Returns NULL or an error text. */
const char *attach_dm(struct probe *p);
void detach_dm(struct probe *p);
void unload_dm(struct probe *p);

uint64_t dm_recursion_misses(const struct probe *p);

#endif
