/* SPDX-License-Identifier: GPL-2.0-only */
/* Of the loader only track.c, entries.c and devtable.c; the devices exist only here. */
#ifndef EBBGATE_TRACKED_H
#define EBBGATE_TRACKED_H

#include "check.h"
#include "block_programs.h"
#include "clock.h"
#include "endio.h"
#include "in_flight.h"
#include "programs.h"
#include "sysfs.h"
#include "track.h"

#include <string.h>

#define A (8U << 20)
#define B (8U << 20 | 16)
#define C (8U << 20 | 32)
#define MD (9U << 20)
#define NVME (259U << 20)
#define RAID0 (9U << 20 | 1)
#define CPUS 2

static struct eb_shared shared;
static struct eb_cpu cpu[CPUS];
static struct probe p;
static struct program_needs attached;
static bool no_addresses;
static uint32_t partition_of_a;

/* What track.c and entries.c need of the rest of the loader. */
uint64_t now_ns(void)
{
	return NS_PER_S;
}

bool block_device_exists(uint32_t dev)
{
	(void)dev;
	return true;
}

bool block_is_partition(uint32_t dev)
{
	return dev == partition_of_a;
}

bool block_has_nvme_paths(uint32_t dev)
{
	return dev == NVME;
}

bool block_is_md_raid0(uint32_t dev)
{
	return dev == RAID0;
}

bool block_has_requests(uint32_t dev)
{
	return dev >> 20 == 8;
}

size_t block_partitions(uint32_t dev, uint32_t *parts, size_t max)
{
	if (dev != A || !partition_of_a || !max)
		return 0;
	parts[0] = partition_of_a;
	return 1;
}

const char *attach_programs(struct probe *probe, struct program_needs needs)
{
	(void)probe;
	attached.bcache |= needs.bcache;
	attached.dm |= needs.dm;
	attached.rq_complete |= needs.rq_complete;
	attached.bio_complete |= needs.bio_complete;
	return NULL;
}

void detach_programs(struct probe *probe, struct program_needs needs)
{
	(void)probe;
	attached.bcache &= needs.bcache;
	attached.dm &= needs.dm;
	attached.rq_complete &= needs.rq_complete;
	attached.bio_complete &= needs.bio_complete;
}

bool resolve_endio(struct probe *probe, uint32_t modules, char reason[REASON_BYTES])
{
	(void)probe;
	if (!no_addresses || modules == ENDIO_KERNEL)
		return true;
	strcpy(reason, "hidden");
	return false;
}

/* A volume of bcache is smaller than its backing device, A or B. */
uint64_t block_sectors(uint32_t dev)
{
	return dev ? (dev == A ? 1 << 30 : 1 << 20) + (dev == B ? 16 : 0) : 0;
}

uint64_t block_start(uint32_t dev)
{
	return dev == partition_of_a ? 1ULL << 33 : 0;
}

void clear_tables(struct probe *probe, const struct volume *v)
{
	(void)probe;
	(void)v;
}

void expect_earlier(struct probe *probe, struct volume *v)
{
	(void)probe;
	(void)v;
}

void init_in_flight(struct probe *probe, struct volume *v)
{
	(void)probe;
	(void)v;
}

static inline void begin(void)
{
	memset(&shared, 0, sizeof(shared));
	memset(&p, 0, sizeof(p));
	p.ncpu = CPUS;
	p.shared = &shared;
	p.cpu = cpu;
	attached = (struct program_needs){ 0 };
	no_addresses = false;
	partition_of_a = 0;
}

static inline void follow(const char *name, enum kind kind, uint32_t volume, uint32_t backing,
			  uint32_t cache)
{
	struct command cmd = { .kind = kind, .volume = volume, .backing = backing };

	strcpy(cmd.name, name);
	cmd.cache[0] = cache;
	cmd.caches = cache != 0;
	CHECK(!track(&p, &cmd));
}

static inline void leave(const char *name)
{
	untrack(&p, volume_named(&p, name));
}

static inline struct eb_dev entry(uint32_t dev)
{
	for (int i = 0; i < EB_DEV_SLOTS; i++)
		if (shared.dev[i].dev == dev)
			return shared.dev[i];
	return (struct eb_dev){ 0 };
}

static inline bool nothing_is_left(void)
{
	for (int i = 0; i < EB_DEV_SLOTS; i++)
		if (shared.dev[i].roles)
			return false;
	for (int i = 0; i < EB_DEVICES; i++)
		if (p.device[i].dev)
			return false;
	return !attached.rq_complete && !attached.bio_complete && !attached.bcache && !attached.dm;
}

#endif
