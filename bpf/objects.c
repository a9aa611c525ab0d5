// SPDX-License-Identifier: GPL-2.0-only
#include "objects.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

/* The maps of maps.bpf.h and edges.bpf.h; an object may do without some of them. */
static const char *const shared_maps[] = { "vol_cpu", "dev_cpu", "edges", ".data.shared" };

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
