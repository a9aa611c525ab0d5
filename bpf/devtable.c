// SPDX-License-Identifier: GPL-2.0-only
#include "devtable.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

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

/* An entry without a role can be reused: a program that still holds it sees no role. */
static struct eb_dev *find_free(struct eb_shared *shared, uint32_t dev)
{
	for (unsigned int probe = 0; probe < EB_DEV_PROBES; probe++)
		if (!slot(shared, dev, probe)->roles)
			return slot(shared, dev, probe);
	return NULL;
}

static void publish(struct eb_dev *e, uint16_t roles)
{
	/* A program that sees the role must also see what it points to. */
	__atomic_store_n(&e->roles, roles, __ATOMIC_RELEASE);
}

int dev_set(struct eb_shared *shared, struct eb_dev entry)
{
	struct eb_dev *e = find(shared, entry.dev);

	if (!e && !entry.roles)
		return 0;
	if (!e) {
		e = find_free(shared, entry.dev);
		if (!e)
			return -ENOSPC;
		e->dev = entry.dev;
	}
	/* First remove the roles that end, then change what the others point to. */
	publish(e, e->roles & entry.roles);
	e->volume = entry.volume;
	e->backs = entry.backs;
	e->device = entry.device;
	publish(e, entry.roles);
	return 0;
}
