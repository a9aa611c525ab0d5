/* SPDX-License-Identifier: GPL-2.0-only */
/* The record of who missed the cache. */
#ifndef EBBGATE_ATTRIBUTION_RECORD_H
#define EBBGATE_ATTRIBUTION_RECORD_H

#include "state.h"

/* Writes the record if its time has come. */
void check_attribution(struct probe *p, struct volume *v, uint64_t now);

/* Writes what is left of a volume whose programs count no more. */
void end_attribution(struct probe *p, struct volume *v, uint64_t now);

#endif
