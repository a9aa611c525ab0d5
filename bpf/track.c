// SPDX-License-Identifier: GPL-2.0-only
/* Which volumes are watched: take on, let go, notice that one is gone. */
#include "probe.h"

#include <string.h>

static const char table_full[] = "the device table is full: untrack a volume first";

struct volume *volume_named(struct probe *p, const char *name)
{
	for (struct volume *v = p->volume; v < p->volume + EB_VOLUMES; v++)
		if (v->used && !strcmp(v->name, name))
			return v;
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
	memset(&p->dev_cpu[free * p->ncpu], 0, p->ncpu * sizeof(p->dev_cpu[0]));
	p->device[free] = (struct device){ .dev = dev, .users = 1 };
	return free;
}

static void device_put(struct probe *p, int i, uint8_t role)
{
	if (--p->device[i].users)
		return;
	dev_remove(p->shared, p->device[i].dev, role);
	p->device[i].dev = 0;
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
	v->check_ns = now + v->wait_ns;
	strcpy(v->name, cmd->name);
	memset(&p->vol_cpu[volume_index(p, v) * p->ncpu], 0, p->ncpu * sizeof(p->vol_cpu[0]));
	forget_streams(p, volume_index(p, v));
	memset(volume_shared(p, v), 0, sizeof(struct eb_vol));
	volume_shared(p, v)->last_ns = now;
	return v;
}

/* Shows a device to the programs; -1: no room, else its index. */
static int take_device(struct probe *p, struct volume *v, uint32_t dev, uint8_t role)
{
	uint32_t index = volume_index(p, v);
	struct eb_dev e = {
		.dev = dev,
		.roles = role,
		.backs = index,
		.backs_slot = index * p->ncpu,
	};
	int i = device_get(p, dev);

	if (i < 0)
		return -1;
	e.device_slot = i * p->ncpu;
	if (v->kind != KIND_DISK)
		e.roles |= EB_HAS_CACHE;
	if (!block_has_requests(dev))
		e.roles |= kind_is_dm(v->kind) ? EB_IS_DM : EB_IS_BIO;
	if (dev_add(p->shared, e) || (e.roles & EB_IS_BIO && attach_bio_complete(p))) {
		device_put(p, i, role);
		return -1;
	}
	return i;
}

static const char *take_devices(struct probe *p, struct volume *v, const struct command *cmd)
{
	for (; v->caches < cmd->caches; v->caches++) {
		int i = take_device(p, v, cmd->cache[v->caches], EB_IS_CACHE);

		if (i < 0)
			return table_full;
		v->cache[v->caches] = i;
	}
	if (cmd->backing) {
		v->backing = take_device(p, v, cmd->backing, EB_IS_BACKING);
		if (v->backing < 0)
			return table_full;
	}
	return NULL;
}

static uint8_t volume_roles(const struct volume *v)
{
	if (v->kind == KIND_BCACHE)
		return EB_IS_VOLUME;
	return EB_IS_VOLUME | EB_IS_DISK | (v->bio_based ? EB_IS_BIO : 0) |
	       (kind_is_dm(v->kind) ? EB_IS_DM : 0);
}

static int take_arrivals(struct probe *p, struct volume *v, uint32_t dev)
{
	uint32_t index = volume_index(p, v);
	struct eb_dev e = {
		.dev = dev,
		.roles = volume_roles(v),
		.volume = index,
		.mode = v->mode,
		.volume_slot = index * p->ncpu,
	};

	if (e.roles & EB_IS_BIO && attach_bio_complete(p))
		return -1;
	return dev_add(p->shared, e);
}

static bool has_partition(const struct volume *v, uint32_t dev)
{
	for (size_t i = 0; i < v->parts; i++)
		if (v->part[i] == dev)
			return true;
	return false;
}

/* Remembered, since a volume that has vanished can no longer be asked. */
static int take_partitions(struct probe *p, struct volume *v)
{
	uint32_t found[PARTITIONS_MAX];
	size_t n = block_partitions(v->dev, found, PARTITIONS_MAX);

	for (size_t i = 0; i < n && v->parts < PARTITIONS_MAX; i++) {
		if (has_partition(v, found[i]))
			continue;
		if (take_arrivals(p, v, found[i]))
			return -1;
		v->part[v->parts++] = found[i];
	}
	return 0;
}

static void release(struct probe *p, struct volume *v)
{
	dev_remove(p->shared, v->dev, EB_IS_VOLUME | EB_IS_DISK);
	while (v->parts)
		dev_remove(p->shared, v->part[--v->parts], EB_IS_VOLUME | EB_IS_DISK);
	if (v->backing >= 0)
		device_put(p, v->backing, EB_IS_BACKING);
	while (v->caches)
		device_put(p, v->cache[--v->caches], EB_IS_CACHE);
	v->used = false;
}

static const char *ready_bcache(struct probe *p)
{
	if (!p->bcache) {
		if (prepare_bcache(p))
			return "cannot load the bcache programs (see stderr): is the module "
			       "loaded?";
		keep_capabilities(p);
	}
	if (!p->bcache_attached && attach_bcache(p))
		return "cannot attach to bcache's tracepoints: restart the probe";
	return NULL;
}

static const char *ready_dm(struct probe *p, const struct command *cmd)
{
	uint32_t need = ENDIO_DM | (cmd->kind == KIND_DM_CACHE ? ENDIO_DM_CACHE : 0);

	if (block_has_requests(cmd->volume))
		return "this is no volume of dm-cache or dm-writecache";
	if (!p->dm || (p->endio_modules & need) != need) {
		(void)prepare_dm(p);
		keep_capabilities(p);
	}
	if (!p->dm)
		return "cannot load the programs for device-mapper (see stderr): is it there?";
	if ((p->endio_modules & need) != need)
		return "the completion functions are not in /proc/kallsyms: is the module loaded?";
	if (!p->dm_attached && attach_dm(p))
		return "cannot attach to the block layer's tracepoints: restart the probe";
	return NULL;
}

static const char *refuse(struct probe *p, const struct command *cmd)
{
	if (volume_named(p, cmd->name))
		return "already tracked";
	for (struct volume *v = p->volume; v < p->volume + EB_VOLUMES; v++)
		if (v->used && v->dev == cmd->volume)
			return "this device is tracked under another name";
	if (!block_device_exists(cmd->volume))
		return "no such volume device";
	if (cmd->backing && !block_device_exists(cmd->backing))
		return "no such backing device";
	for (size_t i = 0; i < cmd->caches; i++)
		if (!block_device_exists(cmd->cache[i]))
			return "no such cache device";
	if (kind_is_dm(cmd->kind))
		return ready_dm(p, cmd);
	return cmd->kind == KIND_BCACHE ? ready_bcache(p) : NULL;
}

const char *track(struct probe *p, const struct command *cmd)
{
	const char *complaint = refuse(p, cmd);
	struct volume *v;

	if (complaint)
		return complaint;
	v = new_volume(p, cmd);
	if (!v)
		return "16 volumes are tracked already: untrack one first";
	complaint = take_devices(p, v, cmd);
	if (!complaint && (take_arrivals(p, v, v->dev) || take_partitions(p, v)))
		complaint = table_full;
	if (complaint) {
		release(p, v);
		return complaint;
	}
	start_in_flight(p, v);
	v->used = true;
	say_track(p, v);
	return NULL;
}

static bool any_volume(const struct probe *p, enum kind kind)
{
	for (const struct volume *v = p->volume; v < p->volume + EB_VOLUMES; v++)
		if (v->used && v->kind == kind)
			return true;
	return false;
}

void untrack(struct probe *p, struct volume *v, const char *why)
{
	release(p, v);
	say_untrack(p, v, why);
	/* While attached, our programs hold the module: let it be unloaded. */
	if (p->bcache_attached && !any_volume(p, KIND_BCACHE))
		detach_bcache(p);
	/* These cost something at every bio of the machine. */
	if (p->dm_attached && !any_volume(p, KIND_DM_CACHE) && !any_volume(p, KIND_DM_WRITECACHE))
		detach_dm(p);
}

void untrack_vanished(struct probe *p)
{
	for (struct volume *v = p->volume; v < p->volume + EB_VOLUMES; v++)
		if (v->used && !block_device_exists(v->dev))
			untrack(p, v, "vanished");
}

void track_partitions(struct probe *p)
{
	for (struct volume *v = p->volume; v < p->volume + EB_VOLUMES; v++)
		if (v->used && take_partitions(p, v))
			say_error(p, table_full, "");
}
