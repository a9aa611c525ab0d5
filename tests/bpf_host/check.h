/* SPDX-License-Identifier: GPL-2.0-only */
/* A test is a function whose name is a claim; its first CHECK that does not hold is printed. */
#ifndef EBBGATE_CHECK_H
#define EBBGATE_CHECK_H

#include <stdio.h>

static int check_failures, check_passed, check_failed;

#define CHECK(condition)                                                                   \
	do {                                                                               \
		if (!(condition)) {                                                        \
			if (!check_failures++)                                             \
				printf("%s:%d: in %s: %s\n", __FILE__, __LINE__, __func__, \
				       #condition);                                        \
		}                                                                          \
	} while (0)

#define CHECK_EQ(got, want)                                                                        \
	do {                                                                                       \
		unsigned long long g = (got), w = (want);                                          \
		if (g != w) {                                                                      \
			if (!check_failures++)                                                     \
				printf("%s:%d: in %s: %s is %llu, not %llu\n", __FILE__, __LINE__, \
				       __func__, #got, g, w);                                      \
		}                                                                                  \
	} while (0)

#define RUN(test)                                     \
	do {                                          \
		check_failures = 0;                   \
		test();                               \
		if (check_failures) {                 \
			check_failed++;               \
			printf("FAILED %s\n", #test); \
		} else {                              \
			check_passed++;               \
		}                                     \
	} while (0)

static inline int check_done(void)
{
	printf("%d passed, %d failed\n", check_passed, check_failed);
	return check_failed != 0;
}

#endif
