// SPDX-License-Identifier: GPL-2.0-only
#include "command.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 1024
#define WORDS_MAX 16
#define MAJOR_MAX 4095
#define MINOR_MAX 1048575

static bool parse_u64(const char *text, char end, uint64_t max, uint64_t *value, const char **rest)
{
	char *stop;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*value = strtoull(text, &stop, 10);
	if (errno || *value > max || *stop != end)
		return false;
	if (rest)
		*rest = end ? stop + 1 : stop;
	return true;
}

static bool parse_dev(const char *text, uint32_t *dev)
{
	uint64_t major, minor;

	if (!parse_u64(text, ':', MAJOR_MAX, &major, &text) ||
	    !parse_u64(text, '\0', MINOR_MAX, &minor, NULL))
		return false;
	*dev = major << 20 | minor;
	return *dev != 0;
}

static bool has_cache(const struct command *cmd, uint32_t dev)
{
	for (size_t i = 0; i < cmd->caches; i++)
		if (cmd->cache[i] == dev)
			return true;
	return false;
}

static const char *parse_caches(char *text, struct command *cmd)
{
	char *save = NULL;
	uint32_t dev;

	for (char *one = strtok_r(text, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
		if (cmd->caches == CACHES_MAX)
			return "more than 8 cache devices";
		if (!parse_dev(one, &dev))
			return "cache= must be MAJ:MIN[,MAJ:MIN]";
		/* It would count twice. */
		if (has_cache(cmd, dev))
			return "cache= names a device twice";
		cmd->cache[cmd->caches++] = dev;
	}
	return NULL;
}

const char *const kind_words[] = {
	[KIND_BCACHE] = "bcache",
	[KIND_DISK] = "disk",
	[KIND_DM_CACHE] = "dm-cache",
	[KIND_DM_WRITECACHE] = "dm-writecache",
};

static const char *const mode_words[] = {
	[MODE_WRITEBACK] = "writeback",
	[MODE_WRITETHROUGH] = "writethrough",
	[MODE_PASSTHROUGH] = "passthrough",
};

/* Index of a word in a list; -1: it is not in it. */
static int index_of(const char *word, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(word, words[i]))
			return i;
	return -1;
}

static const char *parse_kind(const char *word, struct command *cmd)
{
	int kind = index_of(word, kind_words, sizeof(kind_words) / sizeof(kind_words[0]));

	if (kind < 0)
		return "kind= must be bcache, dm-cache, dm-writecache or disk";
	cmd->kind = kind;
	return NULL;
}

static const char *parse_mode(const char *word, struct command *cmd)
{
	int mode = index_of(word, mode_words, sizeof(mode_words) / sizeof(mode_words[0]));

	if (mode < 0)
		return "mode= must be writeback, writethrough or passthrough";
	cmd->mode = mode;
	return NULL;
}

static const char *parse_option(char *word, struct command *cmd)
{
	if (!strncmp(word, "kind=", 5))
		return parse_kind(word + 5, cmd);
	if (!strncmp(word, "mode=", 5))
		return parse_mode(word + 5, cmd);
	if (!strncmp(word, "volume=", 7))
		return parse_dev(word + 7, &cmd->volume) ? NULL : "volume= must be MAJ:MIN";
	if (!strncmp(word, "backing=", 8))
		return parse_dev(word + 8, &cmd->backing) ? NULL : "backing= must be MAJ:MIN";
	if (!strncmp(word, "cache=", 6))
		return parse_caches(word + 6, cmd);
	return "unknown option; track takes kind= volume= cache= backing= mode=";
}

static const char *parse_track(char **words, size_t n, struct command *cmd)
{
	bool kind = false;

	for (size_t i = 2; i < n; i++) {
		const char *error = parse_option(words[i], cmd);

		if (error)
			return error;
		kind |= !strncmp(words[i], "kind=", 5);
	}
	if (!kind || !cmd->volume)
		return "track needs kind= and volume=";
	if (cmd->kind == KIND_BCACHE && !cmd->backing)
		return "a bcache volume needs backing=";
	if (kind_is_dm(cmd->kind) && (!cmd->backing || !cmd->caches))
		return "a device-mapper volume needs cache= and backing=";
	if (cmd->mode && cmd->kind != KIND_DM_CACHE)
		return "mode= is for dm-cache";
	return NULL;
}

static bool valid_name(const char *name)
{
	if (!*name || strlen(name) >= NAME_BYTES)
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr("-_.:/+", *name))
			return false;
	return true;
}

static const char *parse_ns(const char *word, uint64_t min, uint64_t max, struct command *cmd)
{
	if (!parse_u64(word, '\0', max, &cmd->ns, NULL) || (cmd->ns < min && cmd->ns))
		return "NS is out of range (see --help)";
	return cmd->ns || cmd->verb == VERB_PACE ? NULL : "NS must not be 0";
}

static const struct {
	const char *word;
	enum verb verb;
	size_t words; /* 0: at least two */
} verbs[] = {
	{ "track", VERB_TRACK, 0 }, { "untrack", VERB_UNTRACK, 2 }, { "wait", VERB_WAIT, 3 },
	{ "pace", VERB_PACE, 3 },   { "tick", VERB_TICK, 2 },	    { "quit", VERB_QUIT, 1 },
};

static const char *parse_words(char **words, size_t n, struct command *cmd)
{
	bool named = cmd->verb != VERB_TICK && cmd->verb != VERB_QUIT;

	if (named && !valid_name(words[1]))
		return "NAME may have letters, digits and -_.:/+";
	if (named)
		strcpy(cmd->name, words[1]);
	switch (cmd->verb) {
	case VERB_TRACK:
		return parse_track(words, n, cmd);
	case VERB_WAIT:
		return parse_ns(words[2], WAIT_NS_MIN, WAIT_NS_MAX, cmd);
	case VERB_PACE:
		return parse_ns(words[2], PACE_NS_MIN, PACE_NS_MAX, cmd);
	case VERB_TICK:
		return parse_ns(words[1], TICK_NS_MIN, TICK_NS_MAX, cmd);
	case VERB_UNTRACK:
	case VERB_QUIT:
		break;
	}
	return NULL;
}

const char *command_parse(const char *line, struct command *cmd)
{
	char copy[LINE_BYTES], *words[WORDS_MAX], *save = NULL;
	size_t n = 0;

	memset(cmd, 0, sizeof(*cmd));
	if (strlen(line) >= sizeof(copy))
		return "line too long";
	strcpy(copy, line);
	for (char *w = strtok_r(copy, " \t\r", &save); w; w = strtok_r(NULL, " \t\r", &save)) {
		if (n == WORDS_MAX)
			return "too many words";
		words[n++] = w;
	}
	if (!n)
		return "empty line";
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (strcmp(words[0], verbs[i].word))
			continue;
		if (verbs[i].words ? n != verbs[i].words : n < 2)
			return "wrong number of words";
		cmd->verb = verbs[i].verb;
		return parse_words(words, n, cmd);
	}
	return "unknown command; known: track untrack wait pace tick quit";
}
