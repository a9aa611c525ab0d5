// SPDX-License-Identifier: GPL-2.0-only
#include "json.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* How long a reader may take for what is left when the probe is to end. */
#define STOP_GRACE_MS 1000

static void put(struct json *j, const char *text, size_t bytes)
{
	if (bytes > sizeof(j->text) - j->len) {
		j->full = true;
		return;
	}
	memcpy(j->text + j->len, text, bytes);
	j->len += bytes;
}

static void put_char(struct json *j, char c)
{
	put(j, &c, 1);
}

/* A tick has a thousand numbers; printf would be half of the cost of an idle probe. */
static void put_number(struct json *j, uint64_t n)
{
	char digits[20], *first = digits + sizeof(digits);

	do {
		*--first = '0' + n % 10;
		n /= 10;
	} while (n);
	put(j, first, digits + sizeof(digits) - first);
}

static void separate(struct json *j)
{
	if (j->comma)
		put_char(j, ',');
	j->comma = true;
}

static void put_string(struct json *j, const char *s)
{
	static const char hex[] = "0123456789abcdef";

	put_char(j, '"');
	for (; *s; s++) {
		unsigned char c = *s;
		char escaped[] = { '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15] };

		if (c < 0x20 || c >= 0x7f)
			put(j, escaped, sizeof(escaped));
		else if (c == '"' || c == '\\')
			put(j, (char[]){ '\\', c }, 2);
		else
			put_char(j, c);
	}
	put_char(j, '"');
}

void json_begin(struct json *j, const char *type, uint64_t ns)
{
	j->len = 0;
	j->full = false;
	j->comma = false;
	put_char(j, '{');
	json_str(j, "t", type);
	json_u64(j, "ns", ns);
}

void json_key(struct json *j, const char *key)
{
	separate(j);
	put_char(j, '"');
	put(j, key, strlen(key));
	put(j, "\":", 2);
}

void json_u64(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	put_number(j, value);
}

void json_str(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	put_string(j, value);
}

void json_open(struct json *j, const char *key)
{
	json_key(j, key);
	put_char(j, '{');
	j->comma = false;
}

void json_close(struct json *j)
{
	put_char(j, '}');
	j->comma = true;
}

void json_array(struct json *j, const char *key, const unsigned long long *values, size_t n)
{
	while (n && !values[n - 1])
		n--;
	json_numbers(j, key, values, n);
}

void json_numbers(struct json *j, const char *key, const unsigned long long *values, size_t n)
{
	json_key(j, key);
	put_char(j, '[');
	for (size_t i = 0; i < n; i++) {
		if (i)
			put_char(j, ',');
		put_number(j, values[i]);
	}
	put_char(j, ']');
}

void json_str_array(struct json *j, const char *key, const char *const *values, size_t n)
{
	json_key(j, key);
	put_char(j, '[');
	for (size_t i = 0; i < n; i++) {
		if (i)
			put_char(j, ',');
		put_string(j, values[i]);
	}
	put_char(j, ']');
}

/*
 * The pipe is full, or whoever shares a terminal has made it non-blocking. Returns false if there
 * is no room and the probe is to end.
 */
static bool await_room(const struct json *j)
{
	struct pollfd fds[] = {
		{ .fd = STDOUT_FILENO, .events = POLLOUT },
		{ .fd = j->stop_fd ? j->stop_fd : -1, .events = POLLIN },
	};

	if (!j->stopping && (poll(fds, 2, -1) < 0 || fds[0].revents))
		return true;
	return poll(fds, 1, STOP_GRACE_MS) != 0;
}

void json_unblock_stdout(void)
{
	struct stat st;
	int fd;

	if (fstat(STDOUT_FILENO, &st) || !S_ISFIFO(st.st_mode))
		return;
	fd = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)dup2(fd, STDOUT_FILENO);
	close(fd);
}

int json_end(struct json *j)
{
	size_t done = 0;

	put(j, "}\n", 2);
	if (j->full)
		return -EOVERFLOW;
	while (done < j->len) {
		ssize_t n = write(STDOUT_FILENO, j->text + done, j->len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN && await_room(j))
			continue;
		if (n < 0)
			return -errno;
		done += n;
	}
	return 0;
}
