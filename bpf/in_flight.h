/* SPDX-License-Identifier: GPL-2.0-only */
/* Corrects the counts of requests in flight. */
#ifndef EBBGATE_IN_FLIGHT_H
#define EBBGATE_IN_FLIGHT_H

#include "clock.h"
#include "state.h"

/* For so long after a volume is tracked, requests of before may end: SCSI's own limit. */
#define EARLIER_NS (30 * NS_PER_S)

/* Notes the runs of programs that the kernel skipped: if there are more, all counts may be wrong.
 */
void resync_after_misses(struct probe *p, uint64_t misses);

/* Before and after the programs begin to see a volume. */
void expect_earlier(struct probe *p, struct volume *v);
void init_in_flight(struct probe *p, struct volume *v);

void correct_in_flight(struct probe *p, struct volume *v, const struct eb_vol_cpu *sum,
		       uint64_t now);
void correct_destage(struct probe *p, struct volume *v, uint64_t now);

#endif
