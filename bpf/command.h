/* SPDX-License-Identifier: GPL-2.0-only */
/* Parser of the commands on stdin. Pure. */
#ifndef EBBGATE_COMMAND_H
#define EBBGATE_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest name of device-mapper, with its terminator. */
#define NAME_BYTES 128
/* bcache allows one cache device per set today; dm stacks may have several. */
#define CACHES_MAX 8
#define WAIT_NS_MIN 1000000ULL
#define WAIT_NS_MAX 3600000000000ULL
#define PACE_NS_MIN 1000000ULL
#define PACE_NS_MAX 60000000000ULL
#define TICK_NS_MIN 10000000ULL
#define TICK_NS_MAX 60000000000ULL

enum kind { KIND_BCACHE, KIND_DISK, KIND_DM_CACHE, KIND_DM_WRITECACHE };

/* The same numbers as enum eb_mode (record.h). */
enum mode { MODE_WRITEBACK, MODE_WRITETHROUGH, MODE_PASSTHROUGH };

enum verb { VERB_TRACK, VERB_UNTRACK, VERB_WAIT, VERB_PACE, VERB_TICK, VERB_QUIT };

struct command {
	enum verb verb;
	char name[NAME_BYTES];
	enum kind kind;
	enum mode mode;
	uint32_t volume;  /* dev_t as the kernel keeps it: major << 20 | minor */
	uint32_t backing; /* 0: none */
	uint32_t cache[CACHES_MAX];
	size_t caches;
	uint64_t ns;
};

static inline bool kind_is_dm(enum kind kind)
{
	return kind == KIND_DM_CACHE || kind == KIND_DM_WRITECACHE;
}

/* The values of kind=. */
extern const char *const kind_words[];

/* Returns NULL and fills *cmd, or an error text. */
const char *command_parse(const char *line, struct command *cmd);

#endif
