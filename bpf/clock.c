// SPDX-License-Identifier: GPL-2.0-only
#include "probe.h"

#include <time.h>

/* The clock of bpf_ktime_get_ns() and of the kernel's bio stamps. */
uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}
