/* SPDX-License-Identifier: GPL-2.0-only */
/* What the programs count, summed over all CPUs. */
#ifndef EBBGATE_COUNTERS_H
#define EBBGATE_COUNTERS_H

#include "state.h"

/* Destage of one device since it is tracked, as the programs counted it. */
struct destage_counts {
	int64_t queued_ios, queued_bytes;
	int64_t done_ios, done_bytes;
};

/* The same with what is in flight, corrected for starts and ends that were not seen. */
struct destage {
	uint64_t ios, bytes; /* in flight */
	int64_t queued_ios;
	uint64_t done_ios, done_bytes;
};

void sum_volume(const struct probe *p, const struct volume *v, struct eb_vol_cpu *sum);
void sum_device(const struct probe *p, int device, struct eb_dev_cpu *sum);

/* Starts and ends together: it grows whenever a request begins or ends. */
uint64_t volume_moves(const struct probe *p, const struct volume *v);

/* Below 0 when a start was not seen and in_flight.c has not corrected it yet. */
void volume_in_flight(const struct probe *p, const struct volume *v, int64_t inflight[EB_DIRS]);

void count_destage(const struct probe *p, int device, struct destage_counts *c);
void read_destage(const struct probe *p, int device, struct destage *d);

#endif
