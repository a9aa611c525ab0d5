// SPDX-License-Identifier: GPL-2.0-only
#include "check.h"
#include "command.h"

#include <string.h>

static struct command cmd;

static int ok(const char *line)
{
	return command_parse(line, &cmd) == NULL;
}

static void a_full_track_line_is_understood(void)
{
	CHECK(ok("track bcache0 kind=bcache volume=252:0 cache=254:16,8:3 backing=254:0"));
	CHECK(cmd.verb == VERB_TRACK && !strcmp(cmd.name, "bcache0") && cmd.kind == KIND_BCACHE);
	CHECK_EQ(cmd.volume, 252U << 20);
	CHECK_EQ(cmd.backing, 254U << 20);
	CHECK_EQ(cmd.caches, 2);
	CHECK_EQ(cmd.cache[0], 254U << 20 | 16);
	CHECK_EQ(cmd.cache[1], 8U << 20 | 3);
}

static void volumes_of_device_mapper_are_understood(void)
{
	CHECK(ok("track vg-data kind=dm-cache volume=253:0 cache=253:2 backing=253:4"));
	CHECK(cmd.kind == KIND_DM_CACHE && cmd.mode == MODE_WRITEBACK);
	CHECK(ok("track v kind=dm-cache volume=1:1 cache=1:2 backing=1:3 mode=passthrough"));
	CHECK(cmd.mode == MODE_PASSTHROUGH);
	CHECK(ok("track v kind=dm-cache volume=1:1 cache=1:2 backing=1:3 mode=writethrough"));
	CHECK(cmd.mode == MODE_WRITETHROUGH);
	CHECK(ok("track v kind=dm-writecache volume=1:1 cache=1:2 backing=1:3"));
	CHECK(cmd.kind == KIND_DM_WRITECACHE);
	CHECK(!ok("track v kind=dm-cache volume=1:1 cache=1:2"));
	CHECK(!ok("track v kind=dm-cache volume=1:1 backing=1:2"));
	CHECK(!ok("track v kind=dm-cache volume=1:1 cache=1:2 backing=1:3 mode=writearound"));
	CHECK(!ok("track v kind=bcache volume=1:1 backing=1:3 mode=writethrough"));
	CHECK(!ok("track v kind=dm-writecache volume=1:1 cache=1:2 backing=1:3 mode=passthrough"));
	CHECK(!ok("track v kind=dm volume=1:1 cache=1:2 backing=1:3"));
}

static void order_and_white_space_do_not_matter(void)
{
	CHECK(ok("  track\tvg-data  backing=1:2 volume=3:4   kind=bcache \r"));
	CHECK(cmd.caches == 0 && cmd.backing == (1U << 20 | 2));
}

static void a_track_line_that_lacks_something_is_refused(void)
{
	CHECK(!ok("track"));
	CHECK(!ok("track bcache0"));
	CHECK(!ok("track bcache0 kind=bcache volume=252:0"));
	CHECK(!ok("track bcache0 volume=252:0 backing=254:0"));
	CHECK(!ok("track bcache0 kind=bcache backing=254:0"));
	CHECK(!ok("track bcache0 kind=zfs volume=252:0 backing=254:0"));
	CHECK(!ok("track bcache0 kind=disk volume=252:0 colour=blue"));
}

static void a_bad_device_number_is_refused(void)
{
	CHECK(!ok("track d kind=disk volume=252"));
	CHECK(!ok("track d kind=disk volume=252:"));
	CHECK(!ok("track d kind=disk volume=:0"));
	CHECK(!ok("track d kind=disk volume=-1:0"));
	CHECK(!ok("track d kind=disk volume=0:0"));
	CHECK(!ok("track d kind=disk volume=4096:0"));
	CHECK(!ok("track d kind=disk volume=1:1048576"));
	CHECK(!ok("track d kind=disk volume=1:2:3"));
	CHECK(!ok("track d kind=disk volume=99999999999999999999:0"));
	CHECK(!ok("track d kind=disk volume=0x8:0"));
	CHECK(!ok("track d kind=disk volume=1:1 cache=1:1,,x"));
	CHECK(ok("track d kind=disk volume=4095:1048575"));
}

static void a_cache_device_is_named_once(void)
{
	CHECK(!ok("track d kind=disk volume=1:1 cache=1:2,1:3,1:2"));
	CHECK(!ok("track d kind=disk volume=1:1 cache=1:2 cache=1:2"));
	CHECK(ok("track d kind=disk volume=1:1 cache=1:2 cache=1:3"));
	CHECK_EQ(cmd.caches, 2);
}

static void the_number_of_cache_devices_is_bounded(void)
{
	CHECK(ok("track d kind=disk volume=1:1 cache=1:1,1:2,1:3,1:4,1:5,1:6,1:7,1:8"));
	CHECK(!ok("track d kind=disk volume=1:1 cache=1:1,1:2,1:3,1:4,1:5,1:6,1:7,1:8,1:9"));
}

static void names_are_plain(void)
{
	char line[256] = "untrack ";

	CHECK(ok("untrack /dev/vg-1/data.2:x_y"));
	CHECK(ok("untrack c++-data"));
	CHECK(!ok("untrack b\"cache"));
	CHECK(!ok("untrack b\\cache"));
	CHECK(!ok("untrack b\xc3\xa4"));
	memset(line + 8, 'a', NAME_BYTES - 1);
	CHECK(ok(line));
	memset(line + 8, 'a', NAME_BYTES);
	CHECK(!ok(line));
}

static void times_have_ranges(void)
{
	CHECK(ok("wait bcache0 300000000") && cmd.ns == 300000000);
	CHECK(!ok("wait bcache0 999999"));
	CHECK(ok("wait bcache0 1000000"));
	CHECK(!ok("wait bcache0 3600000000001"));
	CHECK(!ok("wait bcache0 0"));
	CHECK(!ok("wait bcache0 300ms"));
	CHECK(!ok("wait bcache0 3e8"));
	CHECK(!ok("wait bcache0 -5"));
	CHECK(!ok("wait bcache0"));
	CHECK(ok("pace bcache0 0") && cmd.ns == 0 && cmd.verb == VERB_PACE);
	CHECK(!ok("pace bcache0 999999"));
	CHECK(ok("pace bcache0 15000000") && cmd.ns == 15000000);
	CHECK(!ok("pace bcache0 15000000 24"));
	CHECK(!ok("pace bcache0"));
	CHECK(ok("tick 10000000") && cmd.verb == VERB_TICK);
	CHECK(!ok("tick 0"));
	CHECK(!ok("tick 9999999"));
}

static void nonsense_is_refused(void)
{
	char line[2000];

	CHECK(!ok(""));
	CHECK(!ok("   "));
	CHECK(!ok("help"));
	CHECK(!ok("quit now"));
	CHECK(ok("quit"));
	CHECK(!ok("a b c d e f g h i j k l m n o p q"));
	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	CHECK(!ok(line));
}

int main(void)
{
	RUN(a_full_track_line_is_understood);
	RUN(volumes_of_device_mapper_are_understood);
	RUN(order_and_white_space_do_not_matter);
	RUN(a_track_line_that_lacks_something_is_refused);
	RUN(a_bad_device_number_is_refused);
	RUN(a_cache_device_is_named_once);
	RUN(the_number_of_cache_devices_is_bounded);
	RUN(names_are_plain);
	RUN(times_have_ranges);
	RUN(nonsense_is_refused);
	return check_done();
}
