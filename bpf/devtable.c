// SPDX-License-Identifier: GPL-2.0-only
/* The dev_t table that the programs look up; see find_dev() in maps.bpf.h. */
#include "probe.h"

#include <errno.h>

static struct eb_dev *slot(struct eb_shared *shared, uint32_t dev, unsigned int probe)
{
	return &shared->dev[((dev * EB_DEV_HASH >> 24) + probe) & (EB_DEV_SLOTS - 1)];
}

static struct eb_dev *find(struct eb_shared *shared, uint32_t dev)
{
	for (unsigned int probe = 0; probe < EB_DEV_PROBES; probe++)
		if (slot(shared, dev, probe)->dev == dev)
			return slot(shared, dev, probe);
	return NULL;
}

/* An entry without a role can be reused: programs that still hold it see no role. */
static struct eb_dev *find_free(struct eb_shared *shared, uint32_t dev)
{
	for (unsigned int probe = 0; probe < EB_DEV_PROBES; probe++)
		if (!slot(shared, dev, probe)->roles)
			return slot(shared, dev, probe);
	return NULL;
}

static void publish(struct eb_dev *e, uint8_t roles)
{
	/* A program that sees the role must see what it points to. */
	__atomic_store_n(&e->roles, roles, __ATOMIC_RELEASE);
}

int dev_add(struct eb_shared *shared, struct eb_dev entry)
{
	struct eb_dev *e = find(shared, entry.dev);

	if (!e) {
		e = find_free(shared, entry.dev);
		if (!e)
			return -ENOSPC;
		e->dev = entry.dev;
	}
	if (entry.roles & EB_IS_VOLUME) {
		e->volume = entry.volume;
		e->mode = entry.mode;
		e->volume_slot = entry.volume_slot;
	}
	/* Of a cache device it says only to whom a loss is counted. */
	if (entry.roles & EB_IS_BACKING || !(e->roles & EB_IS_BACKING)) {
		e->backs = entry.backs;
		e->backs_slot = entry.backs_slot;
	}
	if (entry.roles & (EB_IS_BACKING | EB_IS_CACHE))
		e->device_slot = entry.device_slot;
	publish(e, e->roles | entry.roles);
	return 0;
}

void dev_remove(struct eb_shared *shared, uint32_t dev, uint8_t roles)
{
	struct eb_dev *e = find(shared, dev);

	if (!e)
		return;
	roles = e->roles & ~roles;
	/* What the device is like goes with its last use. */
	publish(e, roles & EB_USES ? roles : 0);
}
