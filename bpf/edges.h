/* SPDX-License-Identifier: GPL-2.0-only */
/* Edges: a volume goes idle or becomes busy. */
#ifndef EBBGATE_EDGES_H
#define EBBGATE_EDGES_H

#include "state.h"

struct edge {
	bool idle;
	uint64_t ns;
	uint64_t length_ns; /* idle: the time without requests so far; busy: the gap that ended */
};

/* Checks a volume when that is due; true with the edge if there is one. */
bool check_edge(struct probe *p, struct volume *v, uint64_t now, struct edge *edge);

/* Takes a busy edge that the programs pushed; false if the volume was not idle. */
bool take_busy_edge(struct volume *v, const struct eb_edge *pushed, struct edge *edge);

void set_wait(struct volume *v, uint64_t wait_ns);

#endif
