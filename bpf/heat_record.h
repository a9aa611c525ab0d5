/* SPDX-License-Identifier: GPL-2.0-only */
/* The record of where users missed the cache. */
#ifndef EBBGATE_HEAT_RECORD_H
#define EBBGATE_HEAT_RECORD_H

#include "state.h"

/* Writes the record if its time has come. */
void check_heat(struct probe *p, struct volume *v, uint64_t now);

/* Writes it for the time since the last one, unless misses of this volume cannot be counted. */
void write_heat(struct probe *p, struct volume *v, uint64_t now);

#endif
