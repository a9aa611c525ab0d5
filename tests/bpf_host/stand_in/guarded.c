// SPDX-License-Identifier: GPL-2.0-only
/* Makes the probe load the programs that disable preemption, also where the kernel does so. */
#define find_features features_of_the_kernel
#include "../../../bpf/kernel_features.c"
#undef find_features

void find_features(struct features *f)
{
	struct btf *btf = btf__load_vmlinux_btf();

	features_of_the_kernel(f);
	f->preemptible = can_disable_preemption(btf);
	btf__free(btf);
}
