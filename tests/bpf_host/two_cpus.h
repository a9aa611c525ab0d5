/* SPDX-License-Identifier: GPL-2.0-only */
/* A probe with the counters of two processors, which a test moves as the programs would. */
#ifndef EBBGATE_TWO_CPUS_H
#define EBBGATE_TWO_CPUS_H

#include "state.h"

#define CPUS 2

static struct eb_shared shared;
static struct eb_cpu cpu[CPUS];
static struct probe p = {
	.ncpu = CPUS,
	.shared = &shared,
	.cpu = cpu,
};

#endif
