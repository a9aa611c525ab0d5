// SPDX-License-Identifier: GPL-2.0-only
/*
 * Replaces bpf/bcache_programs.c and bpf/endio.c in a probe that tracks "bcache" volumes on a
 * kernel without bcache. A request is destage if its completion function has the address in the
 * file EBBGATE_TEST_ENDIO, which is read at each track. EBBGATE_TEST_INSERT has four numbers: the
 * completion function of bcache's writes, that of front parts of split bios, where the word is that
 * tells a fill, and its bit.
 */
#include "bcache_programs.h"
#include "endio.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void read_insert(struct eb_shared *shared)
{
	const char *numbers = getenv("EBBGATE_TEST_INSERT");
	uint64_t n[4];

	if (!numbers || sscanf(numbers, "%" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64, &n[0],
			       &n[1], &n[2], &n[3]) != 4)
		return;
	shared->endio[EB_END_DATA_INSERT] = n[0];
	shared->endio[EB_END_CHAIN] = n[1];
	shared->fill_offset = n[2];
	shared->fill_mask = n[3];
}

bool resolve_endio(struct probe *p, uint32_t modules, char reason[REASON_BYTES])
{
	const char *path = getenv("EBBGATE_TEST_ENDIO");
	FILE *f = path ? fopen(path, "re") : NULL;
	uint64_t address = EB_NO_ENDIO;

	(void)modules;
	(void)reason;
	if (f && fscanf(f, "%" SCNx64, &address) != 1)
		address = EB_NO_ENDIO;
	if (f)
		fclose(f);
	p->shared->endio[EB_END_DIRTY] = address;
	read_insert(p->shared);
	return true;
}

bool endio_known(const struct probe *p, uint32_t modules)
{
	(void)p;
	(void)modules;
	return true;
}

int load_bcache(struct probe *p)
{
	(void)p;
	return 0;
}

const char *attach_bcache(struct probe *p)
{
	p->bcache_heat = p->dm_heat;
	snprintf(p->features.path, sizeof(p->features.path), "ok, by a stand-in");
	return NULL;
}

void detach_bcache(struct probe *p)
{
	(void)p;
}

void unload_bcache(struct probe *p)
{
	(void)p;
}

uint64_t bcache_recursion_misses(const struct probe *p)
{
	(void)p;
	return 0;
}
