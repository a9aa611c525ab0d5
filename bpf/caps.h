/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef EBBGATE_CAPS_H
#define EBBGATE_CAPS_H

#include <stdbool.h>

/* The name of a capability that the probe needs and does not have; NULL: it has all. */
const char *missing_privilege(void);

/* Drops for good what is not needed any more. Returns 0 or -errno. */
int drop_capabilities(bool loads_more_programs);

#endif
