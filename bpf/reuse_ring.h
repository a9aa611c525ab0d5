/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads the sampled references of one CPU. */
#ifndef EBBGATE_REUSE_RING_H
#define EBBGATE_REUSE_RING_H

#include <stddef.h>
#include <stdint.h>

#include "reuse.h"

/* Takes at most `room` references that are new; adds to *lost those that are not taken. */
size_t reuse_take(struct reuse_ring *ring, struct reuse_ref *refs, size_t room, uint64_t *lost);

/* Puts references of several CPUs in order. */
void reuse_sort(struct reuse_ref *refs, size_t n);

#endif
