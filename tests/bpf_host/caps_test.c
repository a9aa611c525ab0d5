// SPDX-License-Identifier: GPL-2.0-only
/* Which capabilities remain. They are noted instead of set, which needs no root. */
#include "caps.h"
#include "check.h"

#include <sys/capability.h>

static cap_t noted;

int cap_set_proc(cap_t caps)
{
	cap_free(noted);
	noted = cap_dup(caps);
	return 0;
}

static bool keeps(cap_value_t value)
{
	cap_flag_value_t permitted = CAP_CLEAR, effective = CAP_CLEAR;

	cap_get_flag(noted, value, CAP_PERMITTED, &permitted);
	cap_get_flag(noted, value, CAP_EFFECTIVE, &effective);
	return permitted == CAP_SET && effective == CAP_SET;
}

static void programs_can_still_be_attached_when_all_are_loaded(void)
{
	CHECK(!drop_capabilities(false));
	CHECK(keeps(CAP_BPF));
	CHECK(keeps(CAP_SYSLOG));
	CHECK(!keeps(CAP_PERFMON));
	CHECK(!keeps(CAP_SYS_ADMIN));
}

static void programs_can_be_loaded_while_a_module_may_come_later(void)
{
	CHECK(!drop_capabilities(true));
	CHECK(keeps(CAP_BPF));
	CHECK(keeps(CAP_SYSLOG));
	CHECK(keeps(CAP_PERFMON));
	CHECK(keeps(CAP_SYS_ADMIN));
	CHECK(!keeps(CAP_SYS_RAWIO));
}

int main(void)
{
	RUN(programs_can_still_be_attached_when_all_are_loaded);
	RUN(programs_can_be_loaded_while_a_module_may_come_later);
	cap_free(noted);
	return check_done();
}
