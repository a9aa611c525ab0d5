// SPDX-License-Identifier: GPL-2.0-only
#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "command.h"
#include "state.h"

#define TICK_NS_DEFAULT (250 * NS_PER_MS)

static const char usage[] =
	"usage: ebbgate-probe [--track \"NAME kind=bcache volume=MAJ:MIN cache=MAJ:MIN "
	"backing=MAJ:MIN\"]...\n"
	"                     [--tick-ms N] [--check] [--version] [--help]\n"
	"       ebbgate-probe --print-maps | --maps NAME=FD,... --programs NAME=FD,... (for\n"
	"                     ebbgate-probe-bcc)\n"
	"\n"
	"Prints JSON records on stdout (bpf/README.md), takes commands on stdin:\n"
	"  track NAME kind=bcache|dm-cache|dm-writecache|disk volume=MAJ:MIN\n"
	"        [cache=MAJ:MIN[,MAJ:MIN]] [backing=MAJ:MIN] "
	"[mode=writeback|writethrough|passthrough]\n"
	"  untrack NAME\n"
	"  wait NAME NS   idle edge after this long without requests: 1 ms .. 1 h\n"
	"                 (default 300000000)\n"
	"  pace NAME NS   period of queue records: 1 ms .. 60 s, 0 = off (default)\n"
	"  tick NS        period of tick records: 10 ms .. 60 s (default 250000000)\n"
	"  quit\n"
	"Exit codes: 0 ok, 64 usage, 69 kernel without BTF or a tracepoint, 70 internal, 77 no "
	"privilege.\n";

static int add_track(struct options *o, const char *text)
{
	struct command cmd;
	const char *error = "line too long";
	char *line = o->track[o->tracks];
	int bytes;

	if (o->tracks == EB_VOLUMES) {
		fprintf(stderr, "ebbgate-probe: at most %d --track\n", EB_VOLUMES);
		return EXIT_USAGE;
	}
	bytes = snprintf(line, sizeof(o->track[0]), "track %s", text);
	/* What was cut off could make another device of it. */
	if (bytes < (int)sizeof(o->track[0]))
		error = command_parse(line, &cmd);
	o->tracks++;
	if (!error)
		return -1;
	fprintf(stderr, "ebbgate-probe: --track '%s': %s\n", text, error);
	return EXIT_USAGE;
}

static int set_tick(struct options *o, const char *text)
{
	char *end;
	unsigned long ms = strtoul(text, &end, 10);

	o->tick_ns = ms * NS_PER_MS;
	if (*text >= '0' && *text <= '9' && !*end && ms <= TICK_NS_MAX / NS_PER_MS &&
	    o->tick_ns >= TICK_NS_MIN)
		return -1;
	fprintf(stderr, "ebbgate-probe: --tick-ms takes 10 to 60000\n");
	return EXIT_USAGE;
}

int parse_options(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "track", required_argument, NULL, 't' },
		{ "tick-ms", required_argument, NULL, 'n' },
		{ "check", no_argument, NULL, 'c' },
		{ "maps", required_argument, NULL, 'm' },
		{ "programs", required_argument, NULL, 'p' },
		{ "print-maps", no_argument, NULL, 'l' },
		{ "version", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c, code = -1;

	*o = (struct options){ .tick_ns = TICK_NS_DEFAULT };
	while (code < 0 && (c = getopt_long(argc, argv, "", longs, NULL)) >= 0) {
		if (c == 't') {
			code = add_track(o, optarg);
		} else if (c == 'n') {
			code = set_tick(o, optarg);
		} else if (c == 'c') {
			o->check = true;
		} else if (c == 'm') {
			o->maps = optarg;
		} else if (c == 'p') {
			o->programs = optarg;
		} else if (c == 'l') {
			o->print_maps = true;
		} else if (c == 'v') {
			puts("ebbgate-probe " PROBE_VERSION);
			code = EXIT_OK;
		} else {
			fputs(usage, c == 'h' ? stdout : stderr);
			code = c == 'h' ? EXIT_OK : EXIT_USAGE;
		}
	}
	if (code < 0 && !o->maps != !o->programs) {
		fprintf(stderr, "ebbgate-probe: --maps and --programs belong together\n");
		code = EXIT_USAGE;
	}
	if (code < 0 && optind < argc) {
		fprintf(stderr, "ebbgate-probe: unexpected argument '%s'\n%s", argv[optind], usage);
		code = EXIT_USAGE;
	}
	return code;
}
