/* SPDX-License-Identifier: GPL-2.0-only */
/* Writer of the dev_t table that the programs look up; see find_dev() in maps.bpf.h. */
#ifndef EBBGATE_DEVTABLE_H
#define EBBGATE_DEVTABLE_H

#include "record.h"

/* Adds or replaces an entry; without a role the entry is removed. Returns 0 or -ENOSPC. */
int dev_set(struct eb_shared *shared, struct eb_dev entry);

#endif
