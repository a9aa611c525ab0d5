// SPDX-License-Identifier: GPL-2.0-only
/* The same definitions for the form of hist.h that the bcc probe uses. */
#define HIST_WITHOUT_TABLES
#include "hist_test.c"
