// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each entry is computed again from the tracked volumes whenever one of them comes or goes, so that
 * no role outlives the volume that gave it.
 */
#include "entries.h"

#include "devtable.h"

/* Programs that are inherited cannot follow parts: devices of dm are like others without requests.
 */
static bool follows_parts(const struct probe *p, const struct volume *v)
{
	return kind_is_dm(v->kind) && !p->inherits;
}

static uint16_t volume_roles(const struct probe *p, const struct volume *v)
{
	if (v->kind == KIND_BCACHE)
		return EB_IS_VOLUME;
	return EB_IS_VOLUME | EB_IS_DISK | (v->bio_based ? EB_IS_BIO : 0) |
	       (follows_parts(p, v) ? EB_IS_DM | EB_HAS_PARTS : 0);
}

bool has_partition(const struct volume *v, uint32_t dev)
{
	for (size_t i = 0; i < v->parts; i++)
		if (v->part[i] == dev)
			return true;
	return false;
}

static void add_volume(const struct probe *p, struct eb_dev *e, const struct volume *v)
{
	e->roles |= volume_roles(p, v);
	e->volume = volume_index(p, v);
}

static void add_device(const struct probe *p, struct eb_dev *e, const struct volume *v, int device,
		       uint16_t role)
{
	/* If two volumes name one device, it backs the one with a cache: that one is paced. */
	bool first = !(e->roles & (EB_IS_BACKING | EB_IS_CACHE));
	bool backs = role == EB_IS_BACKING && (!(e->roles & EB_IS_BACKING) || v->kind != KIND_DISK);

	if (first || backs)
		e->backs = volume_index(p, v);
	e->device = device;
	e->roles |= role;
	if (v->kind != KIND_DISK)
		e->roles |= EB_HAS_CACHE;
	if (follows_parts(p, v))
		e->roles |= EB_SERVES_DM;
	if (p->device[device].bio_based)
		e->roles |= follows_parts(p, v) ? EB_IS_DM : EB_IS_BIO;
}

static struct eb_dev entry_of(const struct probe *p, uint32_t dev)
{
	struct eb_dev e = { .dev = dev };

	for_each_volume (v, p) {
		if (v->dev == dev || has_partition(v, dev))
			add_volume(p, &e, v);
		if (v->backing >= 0 && p->device[v->backing].dev == dev)
			add_device(p, &e, v, v->backing, EB_IS_BACKING);
		for (size_t i = 0; i < v->caches; i++)
			if (p->device[v->cache[i]].dev == dev)
				add_device(p, &e, v, v->cache[i], EB_IS_CACHE);
	}
	if (e.roles & EB_IS_DM || (e.roles & EB_IS_BIO && e.roles & (EB_IS_BACKING | EB_IS_CACHE)))
		e.roles |= EB_IS_JOINED;
	return e;
}

int publish_dev(struct probe *p, uint32_t dev)
{
	return dev_set(p->shared, entry_of(p, dev));
}
