// SPDX-License-Identifier: GPL-2.0-only
#include "check.h"
#include "json.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static struct json j;

static int text_is(const char *want)
{
	j.text[j.len] = '\0';
	if (strcmp(j.text, want))
		printf("got %s\n", j.text);
	return !strcmp(j.text, want);
}

static void a_record_is_one_json_object(void)
{
	static const unsigned long long values[] = { 0, 18446744073709551615ULL, 7, 0, 0 };

	json_begin(&j, "tick", 42);
	json_open(&j, "a");
	json_u64(&j, "n", 0);
	json_open(&j, "empty");
	json_close(&j);
	json_close(&j);
	json_array(&j, "h", values, 5);
	json_array(&j, "z", values, 1);
	json_numbers(&j, "n", values, 5);
	CHECK(text_is("{\"t\":\"tick\",\"ns\":42,\"a\":{\"n\":0,\"empty\":{}},"
		      "\"h\":[0,18446744073709551615,7],\"z\":[],"
		      "\"n\":[0,18446744073709551615,7,0,0]"));
}

static void strings_are_escaped(void)
{
	static const char *const list[] = { "a", "\t" };

	json_begin(&j, "error", 1);
	json_str(&j, "cmd", "\"\\\n\x01\x7f\xff z");
	json_str_array(&j, "l", list, 2);
	json_str_array(&j, "e", list, 0);
	CHECK(text_is(
		"{\"t\":\"error\",\"ns\":1,\"cmd\":\"\\\"\\\\\\u000a\\u0001\\u007f\\u00ff z\","
		"\"l\":[\"a\",\"\\u0009\"],\"e\":[]"));
}

static void a_record_that_does_not_fit_is_refused_whole(void)
{
	static unsigned long long values[JSON_BYTES / 20];

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		values[i] = ~0ULL;
	json_begin(&j, "tick", 1);
	json_array(&j, "h", values, sizeof(values) / sizeof(values[0]));
	CHECK(json_end(&j) == -EOVERFLOW);
}

static void a_reader_that_is_gone_is_reported(void)
{
	int ends[2], out = dup(STDOUT_FILENO), err;

	signal(SIGPIPE, SIG_IGN);
	CHECK(!pipe(ends));
	close(ends[0]);
	dup2(ends[1], STDOUT_FILENO);
	json_begin(&j, "bye", 1);
	err = json_end(&j);
	dup2(out, STDOUT_FILENO);
	close(ends[1]);
	close(out);
	CHECK(err == -EPIPE);
}

/* Reads a pipe until it is closed; returns how many lines came. */
static void *count_lines(void *pipe)
{
	static size_t lines;
	char c;

	while (read(*(int *)pipe, &c, 1) == 1)
		lines += c == '\n';
	return &lines;
}

static void a_slow_reader_of_a_pipe_that_does_not_block_gets_every_record(void)
{
	int ends[2], out = dup(STDOUT_FILENO), err = 0;
	pthread_t reader;
	void *lines;

	CHECK(!pipe(ends));
	CHECK(fcntl(ends[1], F_SETPIPE_SZ, 4096) > 0 && !fcntl(ends[1], F_SETFL, O_NONBLOCK));
	CHECK(!pthread_create(&reader, NULL, count_lines, &ends[0]));
	dup2(ends[1], STDOUT_FILENO);
	for (int i = 0; i < 1000 && !err; i++) {
		json_begin(&j, "tick", 1);
		err = json_end(&j);
	}
	dup2(out, STDOUT_FILENO);
	close(ends[1]);
	close(out);
	CHECK(!pthread_join(reader, &lines));
	close(ends[0]);
	CHECK_EQ(err, 0);
	CHECK_EQ(*(size_t *)lines, 1000);
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	RUN(a_record_is_one_json_object);
	RUN(strings_are_escaped);
	RUN(a_record_that_does_not_fit_is_refused_whole);
	RUN(a_reader_that_is_gone_is_reported);
	RUN(a_slow_reader_of_a_pipe_that_does_not_block_gets_every_record);
	return check_done();
}
