// SPDX-License-Identifier: GPL-2.0-only
#include "track.h"

#include <string.h>

#include "clock.h"
#include "endio.h"
#include "entries.h"
#include "in_flight.h"
#include "memory.h"
#include "programs.h"
#include "queue.h"
#include "sysfs.h"

#define WAIT_NS_DEFAULT (300 * NS_PER_MS)
/* make-bcache takes 16 sectors, or what suits a RAID. A larger difference is a disk that has grown.
 */
#define DATA_SECTOR_MAX (128 << 11)

static const char table_full[] = "the device table is full: untrack a volume first";

struct volume *volume_named(struct probe *p, const char *name)
{
	for_each_volume (v, p) {
		if (!strcmp(v->name, name))
			return v;
	}
	return NULL;
}

static int device_get(struct probe *p, uint32_t dev)
{
	int free = -1;

	for (int i = 0; i < EB_DEVICES; i++) {
		if (p->device[i].dev == dev) {
			p->device[i].users++;
			return i;
		}
		if (!p->device[i].dev && free < 0)
			free = i;
	}
	if (free < 0)
		return -1;
	for (uint32_t cpu = 0; cpu < p->ncpu; cpu++)
		memset(&p->cpu[cpu].device[free], 0, sizeof(p->cpu[cpu].device[free]));
	p->device[free] = (struct device){
		.dev = dev,
		.users = 1,
		.bio_based = !block_has_requests(dev),
		.moved_ns = now_ns(),
	};
	return free;
}

static void device_put(struct probe *p, int i)
{
	if (!--p->device[i].users)
		p->device[i].dev = 0;
}

static void clear_counters(struct probe *p, const struct volume *v)
{
	for (uint32_t cpu = 0; cpu < p->ncpu; cpu++)
		memset(&p->cpu[cpu].volume[volume_index(p, v)], 0, sizeof(struct eb_vol_cpu));
	clear_tables(p, v);
	memset(volume_shared(p, v), 0, sizeof(struct eb_vol));
}

/* bcache makes the volume smaller than its backing device by what comes before it. */
static bool find_data_sector(const struct probe *p, struct volume *v, const struct command *cmd,
			     uint64_t sectors)
{
	uint64_t all = block_sectors(cmd->backing);

	if (all < sectors || all - sectors > DATA_SECTOR_MAX)
		return false;
	volume_shared(p, v)->data_sector = all - sectors;
	return true;
}

/* Whether the programs count misses of this volume, and at the right places. */
static bool find_chunks(const struct probe *p, struct volume *v, const struct command *cmd)
{
	uint64_t sectors = block_sectors(cmd->volume);

	if (!sectors || sectors >> HEAT_CHUNK_SECTORS_LOG2 >= HEAT_CHUNKS_MAX)
		return false;
	if (v->kind == KIND_BCACHE)
		return find_data_sector(p, v, cmd, sectors);
	/* Below a volume of dm bios are seen when the kernel has moved them from a partition. */
	volume_shared(p, v)->data_sector = block_start(cmd->backing);
	return kind_is_dm(v->kind) && !p->inherits;
}

static struct volume *new_volume(struct probe *p, const struct command *cmd)
{
	struct volume *v = p->volume;
	uint64_t now = now_ns();

	while (v < p->volume + EB_VOLUMES && v->used)
		v++;
	if (v == p->volume + EB_VOLUMES)
		return NULL;
	memset(v, 0, sizeof(*v));
	v->kind = cmd->kind;
	v->mode = cmd->mode;
	v->dev = cmd->volume;
	v->bio_based = !block_has_requests(cmd->volume);
	v->backing = -1;
	v->wait_ns = WAIT_NS_DEFAULT;
	v->awaiting_write_base = NO_SAMPLE_YET;
	v->heat_since_ns = now;
	v->attribution_since_ns = now;
	v->earlier_until_ns = now + EARLIER_NS;
	v->moved_ns = now;
	/* Programs that are inherited do not know the cgroup of a request. */
	v->has_attribution = (v->kind == KIND_BCACHE || kind_is_dm(v->kind)) && !p->inherits;
	v->check_ns = now + v->wait_ns;
	strcpy(v->name, cmd->name);
	clear_counters(p, v);
	volume_shared(p, v)->last_ns = now;
	volume_shared(p, v)->mode = v->mode;
	v->has_heat = find_chunks(p, v, cmd);
	return v;
}

static const char *add_devices(struct probe *p, struct volume *v, const struct command *cmd)
{
	for (; v->caches < cmd->caches; v->caches++) {
		int i = device_get(p, cmd->cache[v->caches]);

		if (i < 0)
			return table_full;
		v->cache[v->caches] = i;
	}
	if (cmd->backing) {
		v->backing = device_get(p, cmd->backing);
		if (v->backing < 0)
			return table_full;
	}
	return NULL;
}

static bool is_among(uint32_t dev, const uint32_t *devs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (devs[i] == dev)
			return true;
	return false;
}

/* The number of a partition that is gone may be given to one of another disk (major 259). */
static void forget_partitions(struct probe *p, struct volume *v, const uint32_t *found, size_t n)
{
	size_t i = 0;

	while (i < v->parts) {
		uint32_t part = v->part[i];

		if (is_among(part, found, n) || !block_device_exists(part)) {
			i++;
			continue;
		}
		v->part[i] = v->part[--v->parts];
		(void)publish_dev(p, part);
	}
}

/* They are kept, because they cannot be read from a volume that has vanished. */
static int add_partitions(struct probe *p, struct volume *v)
{
	uint32_t found[PARTITIONS_MAX];
	size_t n = block_partitions(v->dev, found, PARTITIONS_MAX);

	/* Of more than these, some may be left out. */
	if (n < PARTITIONS_MAX)
		forget_partitions(p, v, found, n);
	for (size_t i = 0; i < n && v->parts < PARTITIONS_MAX; i++) {
		if (has_partition(v, found[i]))
			continue;
		v->part[v->parts++] = found[i];
		if (publish_dev(p, found[i])) {
			v->parts--;
			return -1;
		}
	}
	return 0;
}

/* Whether a device below the volume completes bios, or requests. */
static bool any_below(const struct probe *p, const struct volume *v, bool bio_based)
{
	if (v->backing >= 0 && p->device[v->backing].bio_based == bio_based)
		return true;
	for (size_t i = 0; i < v->caches; i++)
		if (p->device[v->cache[i]].bio_based == bio_based)
			return true;
	return false;
}

/*
 * On a device without requests each bio ends on its own, and on any disk a bio that is refused.
 */
static bool needs_bio_complete(const struct probe *p, const struct volume *v)
{
	return v->kind != KIND_BCACHE || any_below(p, v, true);
}

static bool needs_rq_complete(const struct probe *p, const struct volume *v)
{
	return (v->kind == KIND_DISK && !v->bio_based) || any_below(p, v, false);
}

/* Shows the devices of a volume to the programs, or hides them once it is not used any more. */
static int publish(struct probe *p, const struct volume *v)
{
	int err = publish_dev(p, v->dev);

	for (size_t i = 0; i < v->parts; i++)
		err |= publish_dev(p, v->part[i]);
	for (size_t i = 0; i < v->caches; i++)
		err |= publish_dev(p, p->device[v->cache[i]].dev);
	if (v->backing >= 0)
		err |= publish_dev(p, p->device[v->backing].dev);
	return err;
}

static struct program_needs needs_of(const struct probe *p, const struct volume *v)
{
	return (struct program_needs){
		.bcache = v->kind == KIND_BCACHE,
		.dm = kind_is_dm(v->kind),
		.rq_complete = needs_rq_complete(p, v),
		.bio_complete = needs_bio_complete(p, v),
	};
}

static const char *show(struct probe *p, struct volume *v)
{
	const char *error = attach_programs(p, needs_of(p, v));

	if (error)
		return error;
	v->used = true;
	expect_earlier(p, v);
	return publish(p, v) || add_partitions(p, v) ? table_full : NULL;
}

static void detach_unneeded(struct probe *p)
{
	struct program_needs all = { 0 };

	for_each_volume (v, p) {
		struct program_needs needs = needs_of(p, v);

		all.bcache |= needs.bcache;
		all.dm |= needs.dm;
		all.rq_complete |= needs.rq_complete;
		all.bio_complete |= needs.bio_complete;
	}
	detach_programs(p, all);
}

void untrack(struct probe *p, struct volume *v)
{
	v->used = false;
	(void)publish(p, v);
	if (v->backing >= 0)
		device_put(p, v->backing);
	while (v->caches)
		device_put(p, v->cache[--v->caches]);
	detach_unneeded(p);
}

/* Whether a cache or backing device of the command has a property. */
static bool any_device(const struct command *cmd, bool (*has)(uint32_t dev))
{
	bool found = cmd->backing && has(cmd->backing);

	for (size_t i = 0; i < cmd->caches; i++)
		found |= has(cmd->cache[i]);
	return found;
}

static const char *check_command(struct probe *p, const struct command *cmd)
{
	if (volume_named(p, cmd->name))
		return "already tracked";
	for_each_volume (v, p) {
		if (v->dev == cmd->volume)
			return "this device is tracked under another name";
	}
	if (!block_device_exists(cmd->volume))
		return "no such volume device";
	if (cmd->backing && !block_device_exists(cmd->backing))
		return "no such backing device";
	for (size_t i = 0; i < cmd->caches; i++)
		if (!block_device_exists(cmd->cache[i]))
			return "no such cache device";
	if (any_device(cmd, block_has_nvme_paths) || block_has_nvme_paths(cmd->volume))
		return "requests of an NVMe device with several paths cannot be followed: boot "
		       "with "
		       "nvme_core.multipath=N";
	if (p->features.whole_disks && any_device(cmd, block_is_partition))
		return "this kernel does not tell partitions apart: put the cache on whole disks, "
		       "or boot a newer kernel";
	if (p->features.whole_disks && any_device(cmd, block_is_md_raid0))
		return "this kernel does not tell when a request to md raid0 ends: put the cache "
		       "on another device, or boot a newer kernel";
	if (kind_is_dm(cmd->kind) && block_has_requests(cmd->volume))
		return "this is not a volume of dm-cache or dm-writecache";
	return NULL;
}

/* The modules whose completion functions tell the destage of a volume of this kind. */
static uint32_t endio_of(enum kind kind)
{
	switch (kind) {
	case KIND_BCACHE:
		return ENDIO_BCACHE;
	case KIND_DM_CACHE:
		return ENDIO_DM | ENDIO_DM_CACHE;
	case KIND_DM_WRITECACHE:
		return ENDIO_DM;
	case KIND_DISK:
		break;
	}
	return ENDIO_KERNEL;
}

const char *track(struct probe *p, const struct command *cmd)
{
	struct program_needs module = {
		.bcache = cmd->kind == KIND_BCACHE,
		.dm = kind_is_dm(cmd->kind),
	};
	const char *error = check_command(p, cmd);
	struct volume *v;

	/* Its programs come first: they are refused where the module is not loaded. */
	if (!error)
		error = attach_programs(p, module);
	if (error)
		return error;
	v = new_volume(p, cmd);
	if (!v) {
		detach_unneeded(p);
		return "16 volumes are tracked already: untrack one first";
	}
	/* On a plain disk there is no destage. */
	if (resolve_endio(p, endio_of(v->kind), v->class_missing) || v->kind == KIND_DISK)
		v->class_missing[0] = '\0';
	error = add_devices(p, v, cmd);
	if (!error)
		error = show(p, v);
	if (error) {
		untrack(p, v);
		return error;
	}
	init_in_flight(p, v);
	return NULL;
}

const char *track_partitions(struct probe *p, struct volume *v)
{
	return add_partitions(p, v) ? table_full : NULL;
}
