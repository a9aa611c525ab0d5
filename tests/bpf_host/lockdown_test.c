// SPDX-License-Identifier: GPL-2.0-only
#include "check.h"
#include "lockdown.h"

#include <string.h>

static void the_level_in_brackets_is_the_kernels(void)
{
	char level[LOCKDOWN_BYTES] = "";

	CHECK(parse_lockdown("none [integrity] confidentiality\n", level));
	CHECK(!strcmp(level, "integrity"));
	CHECK(parse_lockdown("none integrity [confidentiality]\n", level));
	CHECK(!strcmp(level, "confidentiality"));
}

static void a_kernel_that_is_not_locked_down_has_no_level(void)
{
	char level[LOCKDOWN_BYTES] = "";

	CHECK(!parse_lockdown("[none] integrity confidentiality\n", level));
	CHECK(!parse_lockdown("", level));
	CHECK(!parse_lockdown("none [integrity", level));
	CHECK(!parse_lockdown("[a level of more letters than there is room for]", level));
}

int main(void)
{
	RUN(the_level_in_brackets_is_the_kernels);
	RUN(a_kernel_that_is_not_locked_down_has_no_level);
	return check_done();
}
