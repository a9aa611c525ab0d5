// SPDX-License-Identifier: GPL-2.0-only
#include "inherited.h"

#include <bpf/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"
#include "objects.h"

enum { COUNTERS, SHARED, STREAMS, HEAT, EDGES, MAPS };

struct map_shape {
	const char *name;
	__u32 type, key_bytes, value_bytes, entries, flags;
};

static struct map_shape shape_of(const struct probe *p, int map)
{
	const struct map_shape shapes[MAPS] = {
		[COUNTERS] = { "counters", BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(struct eb_cpu),
			       p->ncpu, BPF_F_MMAPABLE },
		[SHARED] = { "shared", BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(struct eb_shared),
			     1, BPF_F_MMAPABLE },
		[STREAMS] = { "streams", BPF_MAP_TYPE_ARRAY, sizeof(__u32),
			      EB_VOLUMES * sizeof(p->streams[0]), 1, BPF_F_MMAPABLE },
		[HEAT] = { "heat", BPF_MAP_TYPE_ARRAY, sizeof(__u32),
			   EB_VOLUMES * sizeof(struct heat_table), 1, BPF_F_MMAPABLE },
		[EDGES] = { "edges", BPF_MAP_TYPE_RINGBUF, 0, 0, EB_EDGE_RING_BYTES, 0 },
	};

	return shapes[map];
}

void print_maps(const struct probe *p)
{
	for (int map = 0; map < MAPS; map++) {
		struct map_shape s = shape_of(p, map);

		printf("%s %u %u %u %u %u\n", s.name, s.type, s.key_bytes, s.value_bytes, s.entries,
		       s.flags);
	}
}

/* The descriptor of a name in a list of NAME=FD; -1: it is not there. */
static int listed_fd(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = list; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (!strncmp(at, name, len) && at[len] == '=')
			return atoi(at + len + 1);
	}
	return -1;
}

static bool wrong(const struct map_shape *s, const char *what, __u32 found, __u32 expected)
{
	if (found == expected)
		return false;
	fprintf(stderr,
		"ebbgate-probe: --maps: %s has %s %u instead of %u: install ebbgate-probe and "
		"ebbgate-probe-bcc of the same release\n",
		s->name, what, found, expected);
	return true;
}

static bool fits(const struct map_shape *s, int fd)
{
	struct bpf_map_info info = { 0 };
	__u32 bytes = sizeof(info);

	if (fd < 0) {
		fprintf(stderr, "ebbgate-probe: --maps: %s is missing\n", s->name);
		return false;
	}
	if (bpf_obj_get_info_by_fd(fd, &info, &bytes)) {
		fprintf(stderr, "ebbgate-probe: --maps: descriptor %d of %s is not a map\n", fd,
			s->name);
		return false;
	}
	return !wrong(s, "type", info.type, s->type) &&
	       !wrong(s, "key size", info.key_size, s->key_bytes) &&
	       !wrong(s, "value size", info.value_size, s->value_bytes) &&
	       !wrong(s, "max entries", info.max_entries, s->entries) &&
	       !wrong(s, "flags", info.map_flags, s->flags);
}

bool inherit_maps(struct probe *p, const char *list, ring_buffer_sample_fn on_push)
{
	void *memory[MAPS] = { NULL };
	int fd[MAPS];

	for (int map = 0; map < MAPS; map++) {
		struct map_shape s = shape_of(p, map);

		fd[map] = listed_fd(list, s.name);
		if (!fits(&s, fd[map]))
			return false;
		if (map != EDGES)
			memory[map] = map_memory(fd[map], (size_t)s.value_bytes * s.entries);
	}
	p->cpu = memory[COUNTERS];
	p->shared = memory[SHARED];
	p->streams = memory[STREAMS];
	p->bcache_heat = p->dm_heat = memory[HEAT];
	if (!init_memory(p, fd[EDGES], on_push))
		return true;
	fprintf(stderr, "ebbgate-probe: --maps: cannot map the memory: %m\n");
	return false;
}

static const char *const tracepoints[] = {
	"block_bio_queue",	"block_rq_complete",	    "block_bio_complete",
	"bcache_request_start", "bcache_request_end",	    "bcache_read",
	"bcache_write",		"bcache_bypass_sequential", "bcache_bypass_congested",
};
_Static_assert(sizeof(tracepoints) / sizeof(tracepoints[0]) == INHERITED_PROGRAMS,
	       "a program for each tracepoint");

bool inherit_programs(struct probe *p, const char *list)
{
	for (int i = 0; i < INHERITED_PROGRAMS; i++) {
		struct inherited_program *program = &p->inherited[i];
		struct bpf_prog_info info = { 0 };
		__u32 bytes = sizeof(info);

		program->fd = listed_fd(list, tracepoints[i]);
		program->link = -1;
		if (program->fd < 0 || bpf_obj_get_info_by_fd(program->fd, &info, &bytes) ||
		    info.type != BPF_PROG_TYPE_RAW_TRACEPOINT) {
			fprintf(stderr,
				"ebbgate-probe: --programs: no program of a raw tracepoint for "
				"%s\n",
				tracepoints[i]);
			return false;
		}
	}
	return true;
}

static bool needed(const char *tracepoint, struct program_needs needs)
{
	if (!strncmp(tracepoint, "bcache_", 7))
		return needs.bcache;
	if (!strcmp(tracepoint, "block_rq_complete"))
		return needs.rq_complete;
	return needs.bio_complete || strcmp(tracepoint, "block_bio_complete") != 0;
}

const char *attach_inherited(struct probe *p, struct program_needs needs)
{
	for (int i = 0; i < INHERITED_PROGRAMS; i++) {
		struct inherited_program *program = &p->inherited[i];

		if (program->link >= 0 || !needed(tracepoints[i], needs))
			continue;
		program->link = bpf_raw_tracepoint_open(tracepoints[i], program->fd);
		if (program->link >= 0)
			continue;
		fprintf(stderr, "ebbgate-probe: cannot attach to %s: %m\n", tracepoints[i]);
		return needs.bcache ? "cannot attach to bcache's tracepoints; is its module loaded?"
				    : "cannot attach to the block layer's tracepoints";
	}
	return NULL;
}

void detach_inherited(struct probe *p, struct program_needs needs)
{
	for (int i = 0; i < INHERITED_PROGRAMS; i++) {
		struct inherited_program *program = &p->inherited[i];

		if (program->link < 0 || needed(tracepoints[i], needs))
			continue;
		close(program->link);
		program->link = -1;
	}
}

uint64_t inherited_recursion_misses(const struct probe *p)
{
	uint64_t sum = 0;

	for (int i = 0; i < INHERITED_PROGRAMS; i++)
		sum += program_recursion_misses(p->inherited[i].fd);
	return sum;
}
