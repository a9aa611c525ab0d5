/* SPDX-License-Identifier: GPL-2.0-only */
/* The records on stdout, but for the tick (tick_record.h). The protocol is in README.md. */
#ifndef EBBGATE_RECORDS_H
#define EBBGATE_RECORDS_H

#include "edges.h"
#include "queue.h"
#include "state.h"

/* Writes the record that is built in p->json; stops the probe when the reader is gone. */
void write_record(struct probe *p);

void write_hello(struct probe *p);
/* What hello said of the signals, if it is something else by now. */
void write_signals(struct probe *p);
void write_track(struct probe *p, const struct volume *v);
void write_untrack(struct probe *p, const struct volume *v, const char *why);
void write_edge(struct probe *p, const struct volume *v, const struct edge *edge);
void write_queue(struct probe *p, const struct volume *v, const struct queue_sample *s,
		 uint64_t now);
/* The references to sampled blocks since the last one, if there are any. */
void write_reuse(struct probe *p, struct volume *v, uint64_t now);
void write_error(struct probe *p, const char *text, const char *line);
void write_warnings(struct probe *p, uint64_t now);
void write_bye(struct probe *p);

#endif
