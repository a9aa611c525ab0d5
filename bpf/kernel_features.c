// SPDX-License-Identifier: GPL-2.0-only
#include "kernel_features.h"

#include <bpf/btf.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lockdown.h"

/* Number of arguments of a tracepoint (without the hidden first); -1: no such tracepoint. */
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

/* The mask of a flag of enum req_flag_bits, 0: the kernel has no such flag. */
static __u32 flag_mask(const struct btf *btf, const char *name)
{
	int id = btf__find_by_name_kind(btf, "req_flag_bits", BTF_KIND_ENUM);
	const struct btf_type *t;
	const struct btf_enum *e;

	if (id < 0)
		return 0;
	t = btf__type_by_id(btf, id);
	e = btf_enum(t);
	for (int i = 0; i < btf_vlen(t); i++)
		if (!strcmp(btf__name_by_offset(btf, e[i].name_off), name))
			return 1U << e[i].val;
	return 0;
}

static struct eb_flags find_flags(const struct btf *btf)
{
	struct eb_flags f = {
		.sync = flag_mask(btf, "__REQ_SYNC"),
		.meta = flag_mask(btf, "__REQ_META"),
		.ahead = flag_mask(btf, "__REQ_RAHEAD"),
		.preflush = flag_mask(btf, "__REQ_PREFLUSH"),
		.nowait = flag_mask(btf, "__REQ_NOWAIT"),
	};

	f.rare = f.meta | f.ahead | f.preflush | (EB_OP_MASK & ~1U);
	return f;
}

/* Offset in bits of a member, also within unnamed structs and unions; -1: none. */
static int member_bits(const struct btf *btf, const struct btf_type *t, const char *member)
{
	const struct btf_member *m = btf_members(t);

	for (int i = 0; i < btf_vlen(t); i++) {
		const char *name = btf__name_by_offset(btf, m[i].name_off);
		const struct btf_type *inner = btf__type_by_id(btf, m[i].type);
		int bits = btf_member_bit_offset(t, i);
		int below;

		if (!strcmp(name, member))
			return bits;
		if (*name || !btf_is_composite(inner))
			continue;
		below = member_bits(btf, inner, member);
		if (below >= 0)
			return bits + below;
	}
	return -1;
}

/* The same of a struct by its name. */
static int struct_member_bits(const struct btf *btf, const char *type, const char *member)
{
	int id = btf ? btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT) : -1;

	return id < 0 ? -1 : member_bits(btf, btf__type_by_id(btf, id), member);
}

/*
 * Types of a module, or of the kernel if it is built in; NULL: not known. From the file, which
 * needs no privilege: the module may be loaded after that is dropped.
 */
static struct btf *module_btf(const char *module, struct btf *vmlinux)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/kernel/btf/%s", module);
	return vmlinux && !access(path, R_OK) ? btf__parse_split(path, vmlinux) : NULL;
}

/*
 * bcache sets data_insert_op.replace for what it copies on its own. The block programs may be
 * loaded before bcache is, so they get the place of the bit as data.
 */
bool find_fill_bit(__u64 *offset, __u64 *mask)
{
	struct btf *vmlinux = btf__load_vmlinux_btf();
	struct btf *bcache = module_btf("bcache", vmlinux);
	int bits = struct_member_bits(bcache ? bcache : vmlinux, "data_insert_op", "replace");

	btf__free(bcache);
	btf__free(vmlinux);
	/* On big-endian machines bit fields begin at the other end. */
	if (bits < 0 || __BYTE_ORDER != __LITTLE_ENDIAN)
		return false;
	*offset = bits / 64 * 8;
	*mask = 1ULL << bits % 64;
	return true;
}

static void set(char value[SIGNAL_BYTES], const char *text)
{
	snprintf(value, SIGNAL_BYTES, "%s", text);
}

static void check_tracepoint(char value[SIGNAL_BYTES], const struct btf *btf, const char *name,
			     int arity)
{
	int found = tracepoint_arity(btf, name);

	if (found < 0)
		snprintf(value, SIGNAL_BYTES, "missing: the kernel has no tracepoint %s", name);
	else if (found != arity)
		snprintf(value, SIGNAL_BYTES, "missing: the tracepoint %s has unknown arguments",
			 name);
}

/* What no signal can do without; BPF programs may not read a kernel of this level. */
static const char *check_kernel(const struct btf *btf)
{
	char level[LOCKDOWN_BYTES];

	if (!btf)
		return "missing: the kernel has no BTF (/sys/kernel/btf/vmlinux): install "
		       "ebbgate-probe-bcc";
	if (read_lockdown(level) && !strcmp(level, "confidentiality"))
		return "missing: the kernel is locked down (lockdown=confidentiality), so BPF "
		       "programs may not read its memory";
	return "ok";
}

static void set_all(struct features *f, const char *text)
{
	set(f->volume, text);
	set(f->device, text);
	set(f->class, text);
	set(f->path, text);
	set(f->bypass, text);
	set(f->dm_path, text);
	set(f->dm_class, text);
}

void find_inherited_features(struct features *f)
{
	set_all(f, "ok");
	if (access("/sys/module/bcache", F_OK)) {
		set(f->path, "missing: the bcache module is not loaded");
		set(f->bypass, f->path);
		set(f->class, f->path);
	}
	set(f->dm_path, "missing: the bcc probe does not measure paths of device-mapper");
	set(f->dm_class, "ok");
}

static bool has_member(const struct btf *btf, const char *type, const char *member)
{
	return struct_member_bits(btf, type, member) >= 0;
}

/* Whether there is BTF of a module; its type is in that of the kernel if it is built in. */
static bool has_btf(const struct btf *kernel, const char *module, const char *type)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/kernel/btf/%s", module);
	return !access(path, R_OK) || btf__find_by_name_kind(kernel, type, BTF_KIND_STRUCT) > 0;
}

/* Without BTF of its module raw tracepoints give the same. */
static void find_bcache(struct features *f, const struct btf *btf)
{
	bool loaded = !access("/sys/module/bcache", F_OK), typed;

	typed = has_btf(btf, "bcache", "bcache_device");
	f->bcache_raw = loaded && !typed;
	set(f->path, loaded || typed ? "ok" : "missing: the bcache module is not loaded");
	set(f->bypass, f->path);
	set(f->class, f->path);
}

static bool find_dm_offsets(struct eb_dm_offsets *offsets, const struct btf *btf)
{
	int clone = struct_member_bits(btf, "dm_target_io", "clone");
	int io = struct_member_bits(btf, "dm_target_io", "io");
	int original = struct_member_bits(btf, "dm_io", "orig_bio");

	*offsets = (struct eb_dm_offsets){ clone / 8, io / 8, original / 8 };
	return clone >= 0 && io >= 0 && original >= 0;
}

/* The way from a part to its request is known from BTF alone. */
static void find_dm(struct features *f, struct btf *vmlinux)
{
	struct btf *module = module_btf("dm_mod", vmlinux);

	set(f->dm_path, "ok");
	if (!find_dm_offsets(&f->dm, module ? module : vmlinux))
		set(f->dm_path, access("/sys/module/dm_mod", F_OK)
					? "missing: the dm_mod module is not loaded"
					: "missing: the kernel has no BTF of device-mapper");
	else if (f->queue_first)
		set(f->dm_path, "missing: this kernel is too old to follow device-mapper");
	set(f->dm_class, f->dm_path);
	btf__free(module);
}

void find_bcache_features(struct features *f)
{
	struct btf *btf = btf__load_vmlinux_btf();

	find_bcache(f, btf);
	btf__free(btf);
}

void find_dm_features(struct features *f)
{
	struct btf *btf = btf__load_vmlinux_btf();

	find_dm(f, btf);
	btf__free(btf);
}

void find_features(struct features *f)
{
	struct btf *btf = btf__load_vmlinux_btf();

	f->btf = btf;
	set_all(f, check_kernel(btf));
	if (strcmp(f->volume, "ok")) {
		btf__free(btf);
		return;
	}
	f->queue_first = tracepoint_arity(btf, "block_bio_queue") == 2;
	f->stamped = has_member(btf, "bio", "bi_issue");
	f->whole_disks = !has_member(btf, "bio", "bi_bdev");
	check_tracepoint(f->volume, btf, "block_bio_queue", f->queue_first ? 2 : 1);
	check_tracepoint(f->device, btf, "block_rq_complete", 3);
	check_tracepoint(f->device, btf, "block_bio_complete", 2);
	f->flags = find_flags(btf);
	find_bcache(f, btf);
	find_dm(f, btf);
	btf__free(btf);
}
