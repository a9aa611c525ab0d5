// SPDX-License-Identifier: GPL-2.0-only
#include "sysfs.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 320

static void block_path(char path[PATH_BYTES], uint32_t dev, const char *below, const char *file)
{
	snprintf(path, PATH_BYTES, "/sys/dev/block/%u:%u/%s%s", dev >> 20, dev & 0xfffff, below,
		 file);
}

bool block_device_exists(uint32_t dev)
{
	char path[PATH_BYTES];

	block_path(path, dev, "dev", "");
	return !access(path, F_OK);
}

bool block_is_partition(uint32_t dev)
{
	char path[PATH_BYTES];

	block_path(path, dev, "partition", "");
	return !access(path, F_OK);
}

/* The parent of a disk with paths is its subsystem, that of any other is its controller. */
bool block_has_nvme_paths(uint32_t dev)
{
	char path[PATH_BYTES], target[PATH_BYTES];
	ssize_t length;

	block_path(path, dev, block_is_partition(dev) ? "../device/subsystem" : "device/subsystem",
		   "");
	length = readlink(path, target, sizeof(target) - 1);
	if (length < 0)
		return false;
	target[length] = '\0';
	return !strcmp(basename(target), "nvme-subsystem");
}

bool block_is_md_raid0(uint32_t dev)
{
	char path[PATH_BYTES], level[16] = "";
	FILE *f;

	block_path(path, dev, "md/level", "");
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fscanf(f, "%15s", level) != 1)
		level[0] = '\0';
	fclose(f);
	return !strcmp(level, "raid0") || !strcmp(level, "linear");
}

/* The first character of a file; EOF: it cannot be read. */
static int read_first(const char *path)
{
	FILE *f = fopen(path, "re");
	int first = f ? fgetc(f) : EOF;

	if (f)
		fclose(f);
	return first;
}

bool block_has_requests(uint32_t dev)
{
	char path[PATH_BYTES];

	block_path(path, dev, block_is_partition(dev) ? "../mq" : "mq", "");
	return !access(path, F_OK);
}

static uint64_t block_number(uint32_t dev, const char *name)
{
	char path[PATH_BYTES];
	uint64_t number = 0;
	FILE *f;

	block_path(path, dev, name, "");
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%" SCNu64, &number) != 1)
		number = 0;
	fclose(f);
	return number;
}

uint64_t block_sectors(uint32_t dev)
{
	return block_number(dev, "size");
}

uint64_t block_start(uint32_t dev)
{
	return block_number(dev, "start");
}

/*
 * Whether the kernel counts what is in flight. Devices of bcache and device-mapper count always: on
 * 6.1 their switch is off nevertheless.
 */
static bool counts_in_flight(uint32_t dev)
{
	const char *disk = block_is_partition(dev) ? "../" : "";
	char path[PATH_BYTES];

	block_path(path, dev, disk, "queue/iostats");
	if (read_first(path) != '0')
		return true;
	block_path(path, dev, disk, "md");
	return !block_has_requests(dev) && access(path, F_OK);
}

bool block_in_flight(uint32_t dev, uint64_t inflight[EB_DIRS])
{
	char path[PATH_BYTES];
	FILE *f;
	bool ok;

	block_path(path, dev, "inflight", "");
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fscanf(f, "%" SCNu64 " %" SCNu64, &inflight[EB_READ], &inflight[EB_WRITE]) == 2;
	fclose(f);
	return ok && (inflight[EB_READ] || inflight[EB_WRITE] || counts_in_flight(dev));
}

static bool read_partition(uint32_t disk, const char *name, uint32_t *dev)
{
	char path[PATH_BYTES];
	unsigned int major, minor;
	FILE *f;
	bool ok;

	block_path(path, disk, name, "/partition");
	if (access(path, F_OK))
		return false;
	block_path(path, disk, name, "/dev");
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fscanf(f, "%u:%u", &major, &minor) == 2;
	fclose(f);
	*dev = major << 20 | minor;
	return ok;
}

int possible_cpus(void)
{
	FILE *f = fopen("/sys/devices/system/cpu/possible", "re");
	int last = -1;

	if (!f)
		return 0;
	/* Ranges and single numbers, in order: 0-3,8-11. */
	while (fscanf(f, "%d%*c", &last) == 1)
		;
	fclose(f);
	return last + 1;
}

size_t block_partitions(uint32_t dev, uint32_t *parts, size_t max)
{
	char path[PATH_BYTES];
	struct dirent *entry;
	size_t n = 0;
	DIR *d;

	block_path(path, dev, "", "");
	d = opendir(path);
	if (!d)
		return 0;
	while (n < max && (entry = readdir(d)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
		    read_partition(dev, entry->d_name, &parts[n]))
			n++;
	closedir(d);
	return n;
}
