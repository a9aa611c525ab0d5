// SPDX-License-Identifier: GPL-2.0-only
/* kallsyms/: texts in the form of /proc/kallsyms, as the kernels of distributions show it. */
#include "check.h"
#include "symbols.h"

#include <errno.h>
#include <string.h>

static struct symbols symbols;
static char why[160];

static void read_text(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), FIXTURES "/kallsyms/%s.txt", name);
	memset(&symbols, 0, sizeof(symbols));
	CHECK_EQ(read_symbols(path, &symbols), 0);
	why[0] = '\0';
}

static bool complete(uint32_t modules)
{
	return symbols_complete(&symbols, modules, why, sizeof(why));
}

static uint64_t address(enum eb_endio function)
{
	return symbols.symbol[function].address;
}

static void functions_of_modules_are_found(void)
{
	read_text("modular");
	CHECK(complete(ENDIO_ALL));
	CHECK_EQ(address(EB_END_DIRTY), 0xffffffffc0a75400);
	CHECK_EQ(address(EB_END_READ_DIRTY), 0xffffffffc0a75460);
	CHECK_EQ(address(EB_END_DATA_INSERT), 0xffffffffc0a71b30);
	CHECK_EQ(address(EB_END_DM_IO), 0xffffffffc08bd1a0);
	CHECK_EQ(address(EB_END_OVERWRITE), 0xffffffffc0912b40);
	CHECK_EQ(address(EB_END_CHAIN), 0xffffffff8161b5a0);
}

static void device_mapper_may_be_built_in(void)
{
	read_text("dm-built-in");
	CHECK(complete(ENDIO_ALL));
	CHECK_EQ(address(EB_END_DM_CLONE), 0xffffffff81b4f2d0);
	CHECK_EQ(address(EB_END_DM_IO), 0xffffffff81b5c9e0);
	CHECK_EQ(address(EB_END_OVERWRITE), 0xffffffffc0912b40);
}

static void a_part_that_the_compiler_moved_away_is_no_second_function(void)
{
	read_text("ubuntu-6.8");
	CHECK(complete(ENDIO_ALL));
	CHECK_EQ(address(EB_END_CHAIN), 0xffffffff817ac8d0);
	CHECK_EQ(address(EB_END_DM_CLONE), 0xffffffff81e2f250);
	CHECK_EQ(address(EB_END_DM_IO), 0xffffffff81e3ab90);
	CHECK_EQ(address(EB_END_OVERWRITE), 0xffffffffc0912b40);
}

static void caches_may_be_built_in_too(void)
{
	read_text("all-built-in");
	CHECK(complete(ENDIO_ALL));
	CHECK_EQ(address(EB_END_DM_IO), 0xffffffff81b5c9e0);
	CHECK_EQ(address(EB_END_OVERWRITE), 0xffffffffc0912b40);
	CHECK_EQ(address(EB_END_DIRTY), 0xffffffffc0a75400);
}

static void two_built_in_functions_of_one_name_are_refused(void)
{
	read_text("dm-built-in-ambiguous");
	CHECK(!complete(ENDIO_DM));
	CHECK(!strcmp(why, "/proc/kallsyms has 2 functions named endio"));
	CHECK_EQ(address(EB_END_DM_IO), EB_NO_ENDIO);
	CHECK(complete(ENDIO_DM_CACHE));
}

static void a_namesake_in_the_kernel_does_not_stand_for_a_module(void)
{
	read_text("modular-and-a-namesake");
	CHECK(complete(ENDIO_DM | ENDIO_DM_CACHE));
	CHECK_EQ(address(EB_END_DM_IO), 0xffffffffc08bd1a0);
}

static void a_namesake_of_another_module_does_not_count(void)
{
	read_text("modular");
	CHECK_EQ(symbols.symbol[EB_END_DM_IO].found, 1);
	CHECK_EQ(symbols.symbol[EB_END_DIRTY].found, 1);
}

static void hidden_addresses_are_told_with_the_next_step(void)
{
	read_text("hidden");
	CHECK(!complete(ENDIO_BCACHE));
	CHECK(strstr(why, "dirty_endio") && strstr(why, "set kernel.kptr_restrict to 1"));
	CHECK(!complete(ENDIO_DM));
	for (int i = 0; i < EB_ENDIOS; i++)
		CHECK_EQ(address(i), EB_NO_ENDIO);
}

static void what_is_hidden_later_stays_known_unless_its_module_was_loaded_again(void)
{
	struct symbols before;

	read_text("modular");
	before = symbols;
	read_text("hidden");
	keep_known(&symbols, &before, ENDIO_BCACHE | ENDIO_KERNEL);
	CHECK(complete(ENDIO_BCACHE | ENDIO_KERNEL));
	CHECK_EQ(address(EB_END_DIRTY), 0xffffffffc0a75400);
	CHECK_EQ(address(EB_END_CHAIN), 0xffffffff8161b5a0);
	CHECK(!complete(ENDIO_DM));
	/* What can be read counts. */
	read_text("dm-built-in");
	keep_known(&symbols, &before, ENDIO_DM);
	CHECK_EQ(address(EB_END_DM_IO), 0xffffffff81b5c9e0);
}

static void what_is_not_loaded_is_told_by_name(void)
{
	read_text("nothing-loaded");
	CHECK(!complete(ENDIO_DM));
	CHECK(!strcmp(why, "/proc/kallsyms has no function named clone_endio"));
	CHECK(complete(ENDIO_KERNEL));
}

static void a_file_that_cannot_be_read_has_no_function(void)
{
	CHECK_EQ(-read_symbols(FIXTURES "/kallsyms/missing.txt", &symbols), ENOENT);
	CHECK(!complete(ENDIO_KERNEL));
	CHECK_EQ(address(EB_END_CHAIN), EB_NO_ENDIO);
}

int main(void)
{
	RUN(functions_of_modules_are_found);
	RUN(device_mapper_may_be_built_in);
	RUN(a_part_that_the_compiler_moved_away_is_no_second_function);
	RUN(caches_may_be_built_in_too);
	RUN(two_built_in_functions_of_one_name_are_refused);
	RUN(a_namesake_in_the_kernel_does_not_stand_for_a_module);
	RUN(a_namesake_of_another_module_does_not_count);
	RUN(hidden_addresses_are_told_with_the_next_step);
	RUN(what_is_hidden_later_stays_known_unless_its_module_was_loaded_again);
	RUN(what_is_not_loaded_is_told_by_name);
	RUN(a_file_that_cannot_be_read_has_no_function);
	return check_done();
}
