// SPDX-License-Identifier: GPL-2.0-only
#include "objects.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>

/* The maps of the .bpf.h files; an object may do without some of them. */
static const char *const shared_maps[] = { "counters", "edges", "attributions", ".data.shared" };

int share_maps(const struct bpf_object *object, const struct bpf_object *owner)
{
	for (size_t i = 0; i < sizeof(shared_maps) / sizeof(shared_maps[0]); i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(object, shared_maps[i]);
		struct bpf_map *owned = bpf_object__find_map_by_name(owner, shared_maps[i]);
		int err = map ? bpf_map__reuse_fd(map, bpf_map__fd(owned)) : 0;

		if (err)
			return err;
	}
	return 0;
}

#define WITH_QUEUE "_with_queue"
#define RAW "_raw"

static bool ends_with(const char *name, const char *end)
{
	size_t length = strlen(name), end_length = strlen(end);

	return length > end_length && !strcmp(name + length - end_length, end);
}

static struct bpf_program *variant(const struct bpf_object *object, const char *name,
				   const char *end)
{
	char full[128];

	snprintf(full, sizeof(full), "%s%s", name, end);
	return bpf_object__find_program_by_name(object, full);
}

/* Elsewhere the stamp of a bio tells when a request began. */
#define FOR_UNSTAMPED "bcache_request_start"

static bool suits(const struct bpf_object *object, const char *name, const struct features *f)
{
	if (!strncmp(name, FOR_UNSTAMPED, strlen(FOR_UNSTAMPED)) && f->stamped)
		return false;
	if (ends_with(name, WITH_QUEUE))
		return f->queue_first;
	if (ends_with(name, RAW))
		return f->bcache_raw;
	return !(f->bcache_raw && variant(object, name, RAW)) &&
	       !(f->queue_first && variant(object, name, WITH_QUEUE));
}

void choose_programs(struct bpf_object *object, const struct features *features)
{
	struct bpf_program *program;

	bpf_object__for_each_program (program, object)
		bpf_program__set_autoload(program,
					  suits(object, bpf_program__name(program), features));
}

uint64_t program_recursion_misses(int fd)
{
	struct bpf_prog_info info = { 0 };
	__u32 bytes = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &bytes) ? 0 : info.recursion_misses;
}

uint64_t object_recursion_misses(const struct bpf_object *object)
{
	struct bpf_program *program;
	uint64_t sum = 0;

	bpf_object__for_each_program (program, object)
		sum += program_recursion_misses(bpf_program__fd(program));
	return sum;
}
