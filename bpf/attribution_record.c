// SPDX-License-Identifier: GPL-2.0-only
#include "attribution_record.h"

#include "attribution_table.h"
#include "clock.h"
#include "records.h"

#define ATTRIBUTION_PERIOD_NS (10 * NS_PER_S)
/* The reader refuses more (controller/ebbgate/probes/protocol.py). */
#define RECORD_CGROUPS_MAX 64
#define RECORD_INODES_MAX 256
#define NUMBERS_MAX 4

/* The sum of a counter over the CPUs, less what it was before. */
static uint64_t gained(const struct probe *p, const struct volume *v, size_t offset,
		       uint64_t *before)
{
	uint64_t sum = 0, gain;

	for (uint32_t cpu = 0; cpu < p->ncpu; cpu++) {
		const char *counters = (char *)&p->cpu[cpu].volume[volume_index(p, v)];

		sum += __atomic_load_n((const __u64 *)(counters + offset), __ATOMIC_RELAXED);
	}
	gain = sum - *before;
	*before = sum;
	return gain;
}

/* Puts the first owners into the record; returns the misses of the others. */
static uint64_t put_owners(struct json *j, const char *key, const struct attributed *found,
			   size_t n, size_t n_max, bool has_dev)
{
	static unsigned long long numbers[NUMBERS_MAX * RECORD_INODES_MAX];
	unsigned long long *next = numbers;
	uint64_t left_out = 0;

	for (size_t i = 0; i < n; i++) {
		if (i >= n_max) {
			left_out += attributed_misses(&found[i]);
			continue;
		}
		if (has_dev)
			*next++ = found[i].dev;
		*next++ = found[i].id;
		*next++ = found[i].reads;
		*next++ = found[i].writes;
	}
	json_numbers(j, key, numbers, next - numbers);
	return left_out;
}

static void put_cgroups(struct probe *p, struct volume *v, struct attribution_table *table)
{
	static struct attributed found[ATTRIBUTION_CGROUPS];
	size_t n = attribution_take(table->cgroup, 1 << ATTRIBUTION_CGROUP_BITS, found);

	json_u64(&p->json, "cgroups_left_out",
		 put_owners(&p->json, "cgroups", found, n, RECORD_CGROUPS_MAX, false));
	json_u64(&p->json, "cgroups_dropped",
		 gained(p, v, offsetof(struct eb_vol_cpu, lost_cgroups), &v->cgroups_dropped));
}

static void put_inodes(struct probe *p, struct volume *v, struct attribution_table *table)
{
	static struct attributed found[ATTRIBUTION_INODES];
	size_t n = attribution_take(table->inode, 1 << ATTRIBUTION_INODE_BITS, found);

	json_u64(&p->json, "inodes_left_out",
		 put_owners(&p->json, "inodes", found, n, RECORD_INODES_MAX, true));
	json_u64(&p->json, "inodes_dropped",
		 gained(p, v, offsetof(struct eb_vol_cpu, lost_inodes), &v->inodes_dropped));
}

/* Writes the side in which the programs do not count, which ended at `until`. */
static void write_side(struct probe *p, struct volume *v, uint32_t side, uint64_t until,
		       uint64_t now)
{
	struct attribution_table *table = &volume_attribution(p, v)->side[side & 1];

	json_begin(&p->json, "attribution", now);
	json_str(&p->json, "vol", v->name);
	json_u64(&p->json, "since_ns", v->attribution_since_ns);
	json_u64(&p->json, "until_ns", until);
	put_cgroups(p, v, table);
	put_inodes(p, v, table);
	write_record(p);
	v->attribution_since_ns = until;
	v->attribution_until_ns = 0;
}

void check_attribution(struct probe *p, struct volume *v, uint64_t now)
{
	struct eb_vol *shared = volume_shared(p, v);

	if (!v->has_attribution)
		return;
	if (v->attribution_until_ns) {
		write_side(p, v, shared->side + 1, v->attribution_until_ns, now);
	} else if (now - v->attribution_since_ns >= ATTRIBUTION_PERIOD_NS) {
		/* It is written at the next tick, when no program counts in it any more. */
		__atomic_store_n(&shared->side, shared->side ^ 1, __ATOMIC_RELAXED);
		v->attribution_until_ns = now;
	}
}

void end_attribution(struct probe *p, struct volume *v, uint64_t now)
{
	uint32_t side = volume_shared(p, v)->side;

	if (!v->has_attribution)
		return;
	if (v->attribution_until_ns)
		write_side(p, v, side + 1, v->attribution_until_ns, now);
	write_side(p, v, side, now, now);
}
