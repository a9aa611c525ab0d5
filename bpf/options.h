/* SPDX-License-Identifier: GPL-2.0-only */
/* The command line, and the exit codes that it documents. */
#ifndef EBBGATE_OPTIONS_H
#define EBBGATE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record.h"

enum exit_code {
	EXIT_OK = 0,
	EXIT_USAGE = 64,
	EXIT_UNSUPPORTED = 69,
	EXIT_INTERNAL = 70,
	EXIT_NO_PRIVILEGE = 77,
};

struct options {
	char track[EB_VOLUMES][512]; /* whole command lines */
	size_t tracks;
	uint64_t tick_ns;
	bool check;
	/* inherited.h */
	const char *maps, *programs;
	bool print_maps;
};

/* Returns -1 to go on, or the exit code. */
int parse_options(int argc, char **argv, struct options *options);

#endif
