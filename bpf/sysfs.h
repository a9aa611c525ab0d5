/* SPDX-License-Identifier: GPL-2.0-only */
/* What is read from sysfs. */
#ifndef EBBGATE_SYSFS_H
#define EBBGATE_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record.h"

/* One more than the highest number of a processor: numbers may be left out. 0: not known. */
int possible_cpus(void);

bool block_device_exists(uint32_t dev);
bool block_is_partition(uint32_t dev);

/*
 * Whether this is an NVMe device with several paths (or a partition of one): it sends its bios on
 * to a hidden disk for each path, whose requests and ends do not name it.
 */
bool block_has_nvme_paths(uint32_t dev);

/* md raid0 and linear: old kernels send the bio itself on, so that it ends at another device. */
bool block_is_md_raid0(uint32_t dev);

/* Only blk-mq devices (and partitions of them) turn bios into requests. */
bool block_has_requests(uint32_t dev);

/* The size of a device; 0 if it cannot be read. */
uint64_t block_sectors(uint32_t dev);

/* Where a partition begins on its disk, in sectors; 0: not a partition. */
uint64_t block_start(uint32_t dev);

/* The kernel's own count of requests in flight; false if it cannot be read, or is switched off. */
bool block_in_flight(uint32_t dev, uint64_t inflight[EB_DIRS]);

/* Device numbers of the partitions of a disk; returns how many there are, at most max. */
size_t block_partitions(uint32_t dev, uint32_t *parts, size_t max);

#endif
