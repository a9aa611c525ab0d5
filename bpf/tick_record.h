/* SPDX-License-Identifier: GPL-2.0-only */
/* The periodic record of a volume: every counter, cumulative. */
#ifndef EBBGATE_TICK_RECORD_H
#define EBBGATE_TICK_RECORD_H

#include "state.h"

/* Adds the volume's losses to the warnings of this tick, too. */
void write_tick(struct probe *p, struct volume *v, const struct eb_vol_cpu *sum, uint64_t now);

#endif
