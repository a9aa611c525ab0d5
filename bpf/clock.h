/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef EBBGATE_CLOCK_H
#define EBBGATE_CLOCK_H

#include <stdint.h>

#define NS_PER_S 1000000000ULL
#define NS_PER_MS 1000000ULL

/* CLOCK_MONOTONIC: the clock of bpf_ktime_get_ns() and of the kernel's bio stamps. */
uint64_t now_ns(void);

#endif
