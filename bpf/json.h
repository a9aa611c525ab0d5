/* SPDX-License-Identifier: GPL-2.0-only */
/* Builds a JSON object in memory and writes it as one line, so that readers see whole records. */
#ifndef EBBGATE_JSON_H
#define EBBGATE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest record, the misses of 2,048 chunks, needs under 64 KiB; a tick under 40 KiB. */
#define JSON_BYTES 131072

struct json {
	char text[JSON_BYTES];
	size_t len;
	bool comma;
	bool full;
	/*
	 * The probe is to end: a reader that does not read is left. `stop_fd` is readable before
	 * that is known; 0: there is none.
	 */
	bool stopping;
	int stop_fd;
};

void json_begin(struct json *j, const char *type, uint64_t ns);
void json_key(struct json *j, const char *key);
void json_u64(struct json *j, const char *key, uint64_t value);
void json_str(struct json *j, const char *key, const char *value);
void json_open(struct json *j, const char *key);
void json_close(struct json *j);
void json_numbers(struct json *j, const char *key, const unsigned long long *values, size_t n);
/* Trailing zeros are left out. */
void json_array(struct json *j, const char *key, const unsigned long long *values, size_t n);
void json_str_array(struct json *j, const char *key, const char *const *values, size_t n);
/* Closes the record and writes it to stdout. Returns -errno if the reader is gone or is left. */
int json_end(struct json *j);
/*
 * Makes a full pipe at stdout refuse a write instead of blocking it, so that json_end() can be
 * stopped. Others that share the pipe do not see it. To be called with all privileges.
 */
void json_unblock_stdout(void);

#endif
