/* SPDX-License-Identifier: GPL-2.0-only */
/* Samples of the destage in flight, at the period that the controller requested. */
#ifndef EBBGATE_QUEUE_H
#define EBBGATE_QUEUE_H

#include "state.h"

/* Destage on its way from the cache devices to the backing device. */
struct queue_sample {
	uint64_t reads;		 /* in flight on the cache devices */
	uint64_t awaiting_write; /* read, and not yet sent to the backing device */
	uint64_t writes, bytes;	 /* in flight on the backing device */
	uint64_t done_ios, done_bytes;
	uint64_t foreground; /* users' requests in flight at the volume */
};

/* Takes a sample when it is due; false if there is none to report. */
bool check_queue(struct probe *p, struct volume *v, uint64_t now, struct queue_sample *s);

/* Takes a sample because the programs say that destage ran empty; false if none is wanted. */
bool queue_drained(struct probe *p, struct volume *v, uint64_t now, struct queue_sample *s);

/* The base of a volume before its first sample, which sets it. */
#define NO_SAMPLE_YET INT64_MAX

/* Prepares the volumes on the same cache for the end of one, which is still tracked. */
void forget_pieces(struct probe *p, const struct volume *leaving);

/* Applies the command `pace`. Returns NULL or an error text. */
const char *set_pace(struct probe *p, struct volume *v, const struct command *cmd);

#endif
