// SPDX-License-Identifier: GPL-2.0-only
/* What this kernel can give, asked of its BTF and never of its version. */
#include "probe.h"

#include <bpf/btf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Arguments of a tracepoint (without the hidden first), -1: no such tracepoint. */
static int tracepoint_arity(const struct btf *btf, const char *name)
{
	const struct btf_type *t;
	char typedef_name[128];
	int id;

	snprintf(typedef_name, sizeof(typedef_name), "btf_trace_%s", name);
	id = btf__find_by_name_kind(btf, typedef_name, BTF_KIND_TYPEDEF);
	if (id < 0)
		return -1;
	t = btf__type_by_id(btf, btf__type_by_id(btf, id)->type);
	if (!btf_is_ptr(t))
		return -1;
	t = btf__type_by_id(btf, t->type);
	return btf_is_func_proto(t) ? btf_vlen(t) - 1 : -1;
}

static bool has_member(const struct btf *btf, const char *type, const char *member)
{
	int id = btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT);
	const struct btf_type *t;
	const struct btf_member *m;

	if (id < 0)
		return false;
	t = btf__type_by_id(btf, id);
	m = btf_members(t);
	for (int i = 0; i < btf_vlen(t); i++)
		if (!strcmp(btf__name_by_offset(btf, m[i].name_off), member))
			return true;
	return false;
}

bool bcache_has_btf(void)
{
	return !access("/sys/kernel/btf/bcache", R_OK);
}

static void set(char value[96], const char *text)
{
	snprintf(value, 96, "%s", text);
}

static void block_features(struct features *f, const struct btf *btf)
{
	int queue = tracepoint_arity(btf, "block_bio_queue");
	int complete = tracepoint_arity(btf, "block_rq_complete");

	if (queue != 1)
		set(f->volume, queue < 0 ? "missing: the kernel has no tracepoint block_bio_queue"
					 : "missing: unknown arguments of block_bio_queue");
	if (complete != 3)
		set(f->device, complete < 0
				       ? "missing: the kernel has no tracepoint block_rq_complete"
				       : "missing: unknown arguments of block_rq_complete");
	f->bio_stamped = has_member(btf, "bio", "bi_issue");
}

void find_features(struct features *f)
{
	struct btf *btf = btf__load_vmlinux_btf();
	const char *path = "ok";

	if (!btf)
		path = "missing: the kernel has no BTF (/sys/kernel/btf/vmlinux)";
	set(f->volume, path);
	set(f->device, path);
	set(f->klass, path);
	if (btf) {
		block_features(f, btf);
		if (!bcache_has_btf() && tracepoint_arity(btf, "bcache_request_end") < 0)
			path = "missing: the bcache module is not loaded";
		btf__free(btf);
	}
	set(f->path, path);
	set(f->bypass, path);
}
