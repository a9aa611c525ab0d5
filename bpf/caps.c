// SPDX-License-Identifier: GPL-2.0-only
#include "caps.h"

#include <errno.h>
#include <stddef.h>
#include <sys/capability.h>
#include <sys/prctl.h>

/*
 * SYSLOG reads kernel addresses, which change when a module is loaded again. BPF attaches programs
 * and reads how many of their runs were skipped: if kernel.unprivileged_bpf_disabled is set, each
 * call of bpf() requires it, until c8644cd0efe7 ("bpf: refine kernel.unprivileged_bpf_disabled
 * behaviour") (in v5.19). The others load programs if bcache is loaded after the probe: SYS_ADMIN
 * opens a module's BTF. A new volume needs nothing else: it is written to maps that are open.
 */
static const cap_value_t kept[] = { CAP_SYSLOG, CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN };
static const char *const names[] = { "CAP_SYSLOG", "CAP_BPF", "CAP_PERFMON", "CAP_SYS_ADMIN" };
#define KEPT (sizeof(kept) / sizeof(kept[0]))
#define KEPT_ALWAYS 2

static int keep(const cap_value_t *values, int n)
{
	cap_t caps = cap_init();
	int err = 0;

	if (!caps)
		return -errno;
	if (cap_set_flag(caps, CAP_PERMITTED, n, values, CAP_SET) ||
	    cap_set_flag(caps, CAP_EFFECTIVE, n, values, CAP_SET))
		err = -errno;
	if (!err && cap_set_proc(caps))
		err = -errno;
	cap_free(caps);
	return err;
}

int drop_capabilities(bool loads_more_programs)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return keep(kept, loads_more_programs ? KEPT : KEPT_ALWAYS);
}

const char *missing_privilege(void)
{
	cap_t caps = cap_get_proc();
	const char *missing = caps ? NULL : names[0];

	for (size_t i = 0; caps && !missing && i < KEPT; i++) {
		cap_flag_value_t value = CAP_CLEAR;

		cap_get_flag(caps, kept[i], CAP_EFFECTIVE, &value);
		if (value != CAP_SET)
			missing = names[i];
	}
	cap_free(caps);
	return missing;
}
