// SPDX-License-Identifier: GPL-2.0-only
#include "json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

__attribute__((format(printf, 2, 3))) static void put(struct json *j, const char *format, ...)
{
	size_t room = sizeof(j->text) - j->len;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(j->text + j->len, room, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= room)
		j->full = true;
	else
		j->len += n;
}

static void separate(struct json *j)
{
	if (j->comma)
		put(j, ",");
	j->comma = true;
}

static void put_string(struct json *j, const char *s)
{
	put(j, "\"");
	for (; *s; s++) {
		unsigned char c = *s;

		if (c == '"' || c == '\\')
			put(j, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			put(j, "\\u%04x", c);
		else
			put(j, "%c", c);
	}
	put(j, "\"");
}

void json_begin(struct json *j, const char *type, uint64_t ns)
{
	j->len = 0;
	j->full = false;
	j->comma = false;
	put(j, "{");
	json_str(j, "t", type);
	json_u64(j, "ns", ns);
}

void json_key(struct json *j, const char *key)
{
	separate(j);
	put(j, "\"%s\":", key);
}

void json_u64(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	put(j, "%" PRIu64, value);
}

void json_str(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	put_string(j, value);
}

void json_open(struct json *j, const char *key)
{
	json_key(j, key);
	put(j, "{");
	j->comma = false;
}

void json_close(struct json *j)
{
	put(j, "}");
	j->comma = true;
}

void json_array(struct json *j, const char *key, const unsigned long long *values, size_t n)
{
	json_key(j, key);
	put(j, "[");
	while (n && !values[n - 1])
		n--;
	for (size_t i = 0; i < n; i++)
		put(j, i ? ",%llu" : "%llu", values[i]);
	put(j, "]");
}

void json_str_array(struct json *j, const char *key, const char *const *values, size_t n)
{
	json_key(j, key);
	put(j, "[");
	for (size_t i = 0; i < n; i++) {
		if (i)
			put(j, ",");
		put_string(j, values[i]);
	}
	put(j, "]");
}

int json_end(struct json *j)
{
	size_t done = 0;

	put(j, "}\n");
	if (j->full)
		return -EOVERFLOW;
	while (done < j->len) {
		ssize_t n = write(STDOUT_FILENO, j->text + done, j->len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += n;
	}
	return 0;
}
