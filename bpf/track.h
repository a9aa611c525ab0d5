/* SPDX-License-Identifier: GPL-2.0-only */
/* Which volumes are tracked. */
#ifndef EBBGATE_TRACK_H
#define EBBGATE_TRACK_H

#include "state.h"

/* Returns NULL or an error text; then nothing has changed. */
const char *track(struct probe *p, const struct command *cmd);
void untrack(struct probe *p, struct volume *v);

struct volume *volume_named(struct probe *p, const char *name);

/* Tracks partitions that are new. Returns NULL or an error text. */
const char *track_partitions(struct probe *p, struct volume *v);

#endif
