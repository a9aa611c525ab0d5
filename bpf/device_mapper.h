/* SPDX-License-Identifier: GPL-2.0-only */
/* Volumes of device-mapper: what the programs have to know of its module. */
#ifndef EBBGATE_DEVICE_MAPPER_H
#define EBBGATE_DEVICE_MAPPER_H

#include "state.h"

/*
 * Looks at the module if it was not loaded before, tells the programs, and notes in the features
 * what is missing. Returns NULL or an error text.
 */
const char *prepare_dm(struct probe *p);

#endif
