/* SPDX-License-Identifier: GPL-2.0-only */
/* The lines of stdin. Pure: text in, struct or complaint out. */
#ifndef EBBGATE_COMMAND_H
#define EBBGATE_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NAME_BYTES 64
/* bcache allows one cache device a set today; dm stacks may have several. */
#define CACHES_MAX 8
#define WAIT_NS_MIN 1000000ULL
#define WAIT_NS_MAX 3600000000000ULL
#define PACE_NS_MIN 1000000ULL
#define PACE_NS_MAX 60000000000ULL
#define PACE_ABOVE_MAX 4096
#define TICK_NS_MIN 10000000ULL
#define TICK_NS_MAX 60000000000ULL

enum kind { KIND_BCACHE, KIND_DISK };

enum verb { VERB_TRACK, VERB_UNTRACK, VERB_WAIT, VERB_PACE, VERB_TICK, VERB_QUIT };

struct command {
	enum verb verb;
	char name[NAME_BYTES];
	enum kind kind;
	uint32_t volume;  /* dev_t as the kernel keeps it: major << 20 | minor */
	uint32_t backing; /* 0: none */
	uint32_t cache[CACHES_MAX];
	size_t caches;
	uint64_t ns;
	uint64_t above; /* of pace */
	bool relaxed;	/* pace came with ABOVE */
};

/* Returns NULL and fills *cmd, or a complaint that names what is wrong. */
const char *command_parse(const char *line, struct command *cmd);

#endif
