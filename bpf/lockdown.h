/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether the kernel is locked down (kernel_lockdown(7)), and how far. */
#ifndef EBBGATE_LOCKDOWN_H
#define EBBGATE_LOCKDOWN_H

#include <stdbool.h>

#define LOCKDOWN_BYTES 32

/* The level in brackets, as in `none [integrity] confidentiality`; false for none. */
bool parse_lockdown(const char *text, char level[LOCKDOWN_BYTES]);

/* The level of this kernel; false if it is not locked down. */
bool read_lockdown(char level[LOCKDOWN_BYTES]);

#endif
