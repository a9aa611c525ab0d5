// SPDX-License-Identifier: GPL-2.0-only
/* ebbgate-probe: prints what the kernel's block layer does as JSON lines. See README.md. */
#include <bpf/libbpf.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "caps.h"
#include "clock.h"
#include "inherited.h"
#include "kernel_features.h"
#include "lockdown.h"
#include "loop.h"
#include "options.h"
#include "programs.h"
#include "records.h"
#include "state.h"
#include "sysfs.h"

static struct probe probe;

static int print_warning(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, args) : 0;
}

static int count_cpus(struct probe *p)
{
	int n = possible_cpus();

	if (n <= 0) {
		fprintf(stderr, "ebbgate-probe: cannot read the number of processors\n");
		return EXIT_INTERNAL;
	}
	if (n > EB_CPUS_MAX) {
		fprintf(stderr,
			"ebbgate-probe: this machine may have %d processors; up to %d are "
			"supported\n",
			n, EB_CPUS_MAX);
		return EXIT_UNSUPPORTED;
	}
	p->ncpu = n;
	return EXIT_OK;
}

/* Root may lack one in a container, or by the CapabilityBoundingSet= of a service. */
static bool is_privileged(void)
{
	const char *missing = missing_privilege();

	if (missing)
		fprintf(stderr,
			"ebbgate-probe: needs CAP_BPF, CAP_PERFMON, CAP_SYSLOG and CAP_SYS_ADMIN, "
			"and lacks %s: run it as root, with all of these in its bounding set\n",
			missing);
	return !missing;
}

static int refused(int err)
{
	char level[LOCKDOWN_BYTES];
	bool locked = read_lockdown(level);

	fprintf(stderr, "ebbgate-probe: cannot load or attach the programs: %s%s%s%s\n",
		strerror(-err), locked ? "; the kernel is locked down (lockdown=" : "",
		locked ? level : "", locked ? ")" : "");
	return EXIT_INTERNAL;
}

/* On a kernel without BTF the bcc probe takes the place of this process, if it is installed. */
static void become_bcc_probe(char **argv)
{
	char path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - sizeof("-bcc"));

	if (len <= 0)
		return;
	strcpy(path + len, "-bcc");
	execv(path, argv);
}

static int check_features(struct probe *p, const struct options *options, char **argv)
{
	if (options->maps) {
		p->inherits = true;
		find_inherited_features(&p->features);
		return EXIT_OK;
	}
	find_features(&p->features);
	if (!p->features.btf)
		become_bcc_probe(argv);
	if (!strcmp(p->features.volume, "ok"))
		return EXIT_OK;
	fprintf(stderr, "ebbgate-probe: %s\n", p->features.volume);
	return EXIT_UNSUPPORTED;
}

static int start(struct probe *p, const struct options *options)
{
	int err;

	if (p->inherits &&
	    (!inherit_maps(p, options->maps, on_push) || !inherit_programs(p, options->programs)))
		return EXIT_USAGE;
	err = load_programs(p, on_push);
	if (err)
		return refused(err);
	if (drop_capabilities(loads_more_programs(p))) {
		fprintf(stderr, "ebbgate-probe: cannot drop capabilities\n");
		return EXIT_INTERNAL;
	}
	return EXIT_OK;
}

static int run(struct probe *p, const struct options *options, int signals)
{
	int code = EXIT_OK;

	write_hello(p);
	p->tick_ns = options->tick_ns;
	p->next_tick_ns = now_ns() + p->tick_ns;
	p->shared->clock_ns = now_ns();
	for (size_t i = 0; i < options->tracks; i++)
		run_command(p, options->track[i]);
	if (options->check)
		return EXIT_OK;
	if (run_loop(p, signals))
		code = EXIT_INTERNAL;
	if (p->stop_reason)
		write_bye(p);
	return code;
}

/* An edge must not wait for the kernel threads that destage. If refused, it waits a little. */
static void raise_priority(void)
{
	const struct sched_param lowest = { .sched_priority = 1 };

	(void)sched_setscheduler(0, SCHED_RR, &lowest);
}

int main(int argc, char **argv)
{
	struct probe *p = &probe;
	struct options options;
	int signals, code;

	code = parse_options(argc, argv, &options);
	if (code >= 0)
		return code;
	code = count_cpus(p);
	if (code == EXIT_OK && options.print_maps)
		print_maps(p);
	if (code != EXIT_OK || options.print_maps)
		return code;
	if (!is_privileged())
		return EXIT_NO_PRIVILEGE;
	libbpf_set_print(print_warning);
	code = check_features(p, &options, argv);
	if (code != EXIT_OK)
		return code;
	raise_priority();
	signals = open_signals();
	p->json.stop_fd = signals;
	json_unblock_stdout();
	code = start(p, &options);
	if (code == EXIT_OK)
		code = run(p, &options, signals);
	unload_programs(p);
	return code;
}
