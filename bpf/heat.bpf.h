/* SPDX-License-Identifier: GPL-2.0-only */
/* Users' requests that missed the cache, by chunks of the volume. */
#ifndef EBBGATE_HEAT_BPF_H
#define EBBGATE_HEAT_BPF_H

#include "maps.bpf.h"

#ifndef EBBGATE_BCC
/* bcache.bpf.c has its own. */
struct heat_table heat[EB_VOLUMES];
#endif

static __always_inline void count_miss(__u32 volume, __u64 sector, __u64 kind, bool atomics)
{
	struct eb_cpu *cpu;

	if (!heat_count(&heat[volume & (EB_VOLUMES - 1)], sector, kind, atomics))
		return;
	cpu = this_cpu();
	if (cpu)
		vol_counters(cpu, volume)->lost_heat++;
}

static __always_inline __u64 read_kind(struct bio *bio, __u32 bytes, bool raw)
{
	if (bytes <= HEAT_WAITED_BYTES_MAX || !(opf_of(bio, raw) & flags.ahead))
		return HEAT_SYNC_READ;
	return HEAT_OTHER_READ;
}

#endif
