/* SPDX-License-Identifier: GPL-2.0-only */
/* Who made the requests that missed the cache: the cgroup and the inode of a bio. */
#ifndef EBBGATE_ATTRIBUTION_BPF_H
#define EBBGATE_ATTRIBUTION_BPF_H

#include "maps.bpf.h"

#ifdef EBBGATE_BCC
/* The kernel's headers do not show struct blkcg_gq. */
#define attribute_miss(bio, volume, direction, raw)
#else

/* By volume; all objects have that of block.bpf.c, mapped into the loader's memory. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, EB_VOLUMES);
	__type(key, __u32);
	__type(value, struct attribution);
} attributions SEC(".maps");

struct kernfs_node {
	__u64 id;
} __core;

struct cgroup {
	struct kernfs_node *kn;
} __core;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
} __core;

struct blkcg {
	struct cgroup_subsys_state css;
} __core;

struct blkcg_gq {
	struct blkcg *blkcg;
} __core;

/* Without CONFIG_BLK_CGROUP a bio has no cgroup. */
struct bio___cgroup {
	struct blkcg_gq *bi_blkg;
} __core;

struct super_block {
	__u32 s_dev;
} __core;

struct inode {
	struct super_block *i_sb;
	__u64 i_ino;
} __core;

struct address_space {
	struct inode *host;
} __core;

struct page {
	struct address_space *mapping;
} __core;

/*
 * Bit 0 tells the tail of a compound page. The others are the address of its head, or since "mm:
 * rework compound_head() for power-of-2 sizeof(struct page)" (in v7.1), under another name and in
 * some configurations, the mask that leads to it.
 */
struct page___head {
	__u64 compound_head;
} __core;

struct page___info {
	__u64 compound_info;
} __core;

#define PAGE_IS_TAIL 1ULL
/* Masks have all these bits, no address of a struct page has. */
#define PAGE_MASK_BITS 0xffffffffULL << 32

/* Low bits of a page's mapping: memory of a process, or of a driver. */
#define MAPPING_NO_FILE 3ULL

struct bio_vec {
	struct page *bv_page;
} __core;

struct bio___pages {
	struct bio_vec *bi_io_vec;
} __core;

/* The number of the cgroup that is charged for a bio, as in cgroupfs; 0: not known. */
static __always_inline __u64 cgroup_of(struct bio *bio, bool raw)
{
	struct bio___cgroup *b = (struct bio___cgroup *)bio;

	if (!bpf_core_field_exists(((struct bio___cgroup *)0)->bi_blkg))
		return 0;
	return raw ? BPF_CORE_READ(b, bi_blkg, blkcg, css.cgroup, kn, id)
		   : b->bi_blkg->blkcg->css.cgroup->kn->id;
}

/* A pointer, or what the verifier takes for one, as a number: see bio_id(). */
static __always_inline __u64 number_of(__u64 pointer)
{
	asm volatile("%0 = -%0" : "+r"(pointer));
	return -pointer;
}

/* It shares its place in struct page with pointers, whose type the verifier gives it. */
static __always_inline __u64 compound_info(struct page *page, bool raw)
{
	struct page___head *old = (struct page___head *)page;
	struct page___info *new = (struct page___info *)page;

	if (bpf_core_field_exists(((struct page___head *)0)->compound_head))
		return raw ? BPF_CORE_READ(old, compound_head) : number_of(old->compound_head);
	if (bpf_core_field_exists(((struct page___info *)0)->compound_info))
		return raw ? BPF_CORE_READ(new, compound_info) : number_of(new->compound_info);
	return 0;
}

/* Tells an inode: its number and its filesystem's device. */
struct file_id {
	__u64 inode;
	__u32 dev;
};

/*
 * The file of a page, from the mapping of the page or of its head. Where the mapping of a page
 * means something else, the kernel reads zeros or fails the read. A filesystem without a device
 * has unnamed files in memory, which a process may use for direct I/O, or (btrfs) numbers that
 * repeat.
 */
static __always_inline struct file_id file_in(struct address_space *mapping, bool checked)
{
	struct file_id file = {};

	if (checked) {
		file.inode = BPF_CORE_READ(mapping, host, i_ino);
		file.dev = BPF_CORE_READ(mapping, host, i_sb, s_dev);
	} else {
		struct inode *host = mapping->host;

		file.inode = host->i_ino;
		file.dev = host->i_sb->s_dev;
	}
	return file;
}

/* A page in the middle of a folio leads to its head, by an address that only helpers read. */
static __always_inline struct file_id file_of_tail(__u64 page, __u64 info)
{
	__u64 head =
		(info & (PAGE_MASK_BITS)) == (PAGE_MASK_BITS) ? page & info : info - PAGE_IS_TAIL;
	struct address_space *mapping = BPF_CORE_READ((struct page *)head, mapping);
	struct file_id none = {};

	return (__u64)mapping & MAPPING_NO_FILE ? none : file_in(mapping, true);
}

/* The file of the first page of a bio: all its pages belong to one. */
static __always_inline struct file_id file_of(struct bio *bio, bool raw)
{
	struct bio___pages *b = (struct bio___pages *)bio;
	struct page *page = raw ? BPF_CORE_READ(b, bi_io_vec, bv_page) : b->bi_io_vec->bv_page;
	__u64 info = compound_info(page, raw);
	struct address_space *mapping;
	struct file_id none = {};

	if (UNLIKELY(info & PAGE_IS_TAIL))
		return file_of_tail(raw ? (__u64)page : number_of((__u64)page), info);
	mapping = raw ? BPF_CORE_READ(page, mapping) : page->mapping;
	if ((raw ? (__u64)mapping : number_of((__u64)mapping)) & MAPPING_NO_FILE)
		return none;
	return file_in(mapping, raw);
}

/* Counts a miss of the bio's cgroup and inode. */
static __always_inline void attribute_miss(struct bio *bio, __u32 volume, __u32 direction, bool raw)
{
	struct attribution *of = bpf_map_lookup_elem(&attributions, &volume);
	struct attribution_table *table;
	int lost_cgroup, lost_inode;
	struct file_id file;
	struct eb_cpu *cpu;
	__u64 cgroup;

	if (!of)
		return;
	table = &of->side[volume_of(volume)->side & 1];
	file = file_of(bio, raw);
	cgroup = cgroup_of(bio, raw);
	if (!cgroup)
		cgroup = ATTRIBUTION_UNKNOWN;
	if (!file.inode || !(file.dev >> 20)) {
		file.inode = ATTRIBUTION_UNKNOWN;
		file.dev = 0;
	}
	lost_cgroup = attribution_count(
		&table->cgroup[attribution_place(cgroup, 0, ATTRIBUTION_CGROUP_BITS)], cgroup, 0,
		direction, !raw);
	lost_inode = attribution_count(
		&table->inode[attribution_place(file.inode, file.dev, ATTRIBUTION_INODE_BITS)],
		file.inode, file.dev, direction, !raw);
	if (!(lost_cgroup | lost_inode))
		return;
	cpu = this_cpu();
	if (!cpu)
		return;
	vol_counters(cpu, volume)->lost_cgroups += lost_cgroup;
	vol_counters(cpu, volume)->lost_inodes += lost_inode;
}
#endif

#endif
