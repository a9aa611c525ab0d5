/* SPDX-License-Identifier: GPL-2.0-only */
/* The entries of the dev_t table: which devices the programs see, and in which roles. */
#ifndef EBBGATE_ENTRIES_H
#define EBBGATE_ENTRIES_H

#include "state.h"

/* Shows a device to the programs as the tracked volumes have it now. Returns 0 or -ENOSPC. */
int publish_dev(struct probe *p, uint32_t dev);

bool has_partition(const struct volume *v, uint32_t dev);

#endif
