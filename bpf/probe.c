// SPDX-License-Identifier: GPL-2.0-only
/*
 * ebbgate-probe: loads the programs, gives up its privileges, and turns what the kernel
 * counts into JSON lines. See README.md for the protocol.
 */
#include "probe.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Sent by the kernel when the parent dies; told apart from a person's SIGTERM. */
#define SIG_PARENT SIGUSR1
#define INPUT_BYTES 4096

struct input {
	char text[INPUT_BYTES];
	size_t len;
};

static struct probe probe;

static void run_command(struct probe *p, const char *line)
{
	struct command cmd;
	const char *complaint = command_parse(line, &cmd);
	struct volume *v = NULL;

	if (!complaint && cmd.name[0] && cmd.verb != VERB_TRACK) {
		v = volume_named(p, cmd.name);
		if (!v)
			complaint = "not tracked";
	}
	if (!complaint && cmd.verb == VERB_TRACK)
		complaint = track(p, &cmd);
	if (complaint) {
		say_error(p, complaint, line);
		return;
	}
	if (cmd.verb == VERB_UNTRACK)
		untrack(p, v, "asked");
	else if (cmd.verb == VERB_QUIT)
		p->bye = "quit";
	else if (cmd.verb == VERB_TICK)
		p->tick_ns = cmd.ns, p->next_tick_ns = now_ns() + cmd.ns;
	else if (cmd.verb == VERB_WAIT)
		set_wait(p, v, cmd.ns);
	else if (cmd.verb == VERB_PACE && (complaint = set_pace(p, v, &cmd)))
		say_error(p, complaint, line);
}

static void run_lines(struct probe *p, struct input *in)
{
	char *line = in->text, *end;

	while (!p->bye && (end = memchr(line, '\n', in->text + in->len - line))) {
		*end = '\0';
		if (end != line)
			run_command(p, line);
		line = end + 1;
	}
	in->len -= line - in->text;
	memmove(in->text, line, in->len);
	if (in->len == sizeof(in->text)) {
		say_error(p, "line too long", "");
		in->len = 0;
	}
}

static void read_input(struct probe *p, struct input *in)
{
	ssize_t n = read(STDIN_FILENO, in->text + in->len, sizeof(in->text) - in->len);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		p->bye = "stdin closed";
		return;
	}
	in->len += n;
	run_lines(p, in);
}

static void read_signal(struct probe *p, int fd)
{
	struct signalfd_siginfo info;

	if (read(fd, &info, sizeof(info)) == sizeof(info))
		p->bye = info.ssi_signo == SIG_PARENT ? "parent died" : "signal";
}

static uint64_t next_due(const struct probe *p)
{
	uint64_t due = p->next_tick_ns;

	for (const struct volume *v = p->volume; v < p->volume + EB_VOLUMES; v++) {
		if (!v->used)
			continue;
		if (v->check_ns < due)
			due = v->check_ns;
		if (v->pace_ns && v->queue_ns < due)
			due = v->queue_ns;
	}
	return due;
}

static void tick(struct probe *p, uint64_t now)
{
	struct eb_vol_cpu sum;

	untrack_vanished(p);
	for (struct volume *v = p->volume; v < p->volume + EB_VOLUMES; v++) {
		if (!v->used)
			continue;
		sum_volume(p, v, &sum);
		resync(p, v, &sum);
		resync_destage(p, v, now);
		say_tick(p, v, &sum, now);
	}
	say_warnings(p, now);
}

static void check_tick(struct probe *p, uint64_t now)
{
	if (now < p->next_tick_ns)
		return;
	p->shared->clock_ns = now;
	tick(p, now);
	p->next_tick_ns += p->tick_ns;
	if (p->next_tick_ns <= now)
		p->next_tick_ns = now + p->tick_ns;
	if (now >= p->next_scan_ns) {
		track_partitions(p);
		p->next_scan_ns = now + NS_PER_S;
	}
}

static int loop(struct probe *p, int signals)
{
	static struct input in;
	struct pollfd fds[] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = signals, .events = POLLIN },
		{ .fd = ring_buffer__epoll_fd(p->ring), .events = POLLIN },
	};

	while (!p->bye) {
		uint64_t now = now_ns(), due = next_due(p);
		uint64_t left = due > now ? due - now : 0;
		struct timespec timeout = { left / NS_PER_S, left % NS_PER_S };

		if (ppoll(fds, 3, &timeout, NULL) < 0 && errno != EINTR)
			return -errno;
		ring_buffer__consume(p->ring);
		if (fds[0].revents)
			read_input(p, &in);
		if (fds[1].revents)
			read_signal(p, signals);
		now = now_ns();
		check_edges(p, now);
		check_queues(p, now);
		check_tick(p, now);
	}
	return 0;
}

static int catch_signals(void)
{
	sigset_t set;
	pid_t parent = getppid();

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIG_PARENT);
	signal(SIGPIPE, SIG_IGN);
	if (sigprocmask(SIG_BLOCK, &set, NULL) || prctl(PR_SET_PDEATHSIG, SIG_PARENT))
		return -1;
	if (getppid() != parent)
		raise(SIG_PARENT);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int say_libbpf(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, args) : 0;
}

static int count_cpus(struct probe *p)
{
	int n = libbpf_num_possible_cpus();

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

static int start(struct probe *p)
{
	int code = count_cpus(p), err;

	if (code != EXIT_OK)
		return code;
	find_features(&p->features);
	if (strcmp(p->features.volume, "ok")) {
		fprintf(stderr, "ebbgate-probe: %s\n", p->features.volume);
		return EXIT_UNSUPPORTED;
	}
	err = load_block(p);
	if (err) {
		fprintf(stderr, "ebbgate-probe: cannot load or attach the programs: %s\n",
			strerror(-err));
		return EXIT_INTERNAL;
	}
	if (!strcmp(p->features.path, "ok"))
		(void)prepare_bcache(p);
	if (!strcmp(p->features.dm_path, "ok"))
		(void)prepare_dm(p);
	if (keep_capabilities(p)) {
		fprintf(stderr, "ebbgate-probe: cannot drop capabilities\n");
		return EXIT_INTERNAL;
	}
	return EXIT_OK;
}

/* An edge must not wait for the kernel threads that destage. Refused: it waits a little longer. */
static void be_prompt(void)
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
	p->tick_ns = options.tick_ns;
	if (!have_privilege()) {
		fprintf(stderr, "ebbgate-probe: needs CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN: run "
				"it as root\n");
		return EXIT_NO_PRIVILEGE;
	}
	be_prompt();
	libbpf_set_print(say_libbpf);
	signals = catch_signals();
	code = start(p);
	if (code == EXIT_OK) {
		say_hello(p);
		p->shared->clock_ns = now_ns();
		p->next_tick_ns = now_ns() + p->tick_ns;
		for (size_t i = 0; i < options.tracks; i++)
			run_command(p, options.track[i]);
		if (!options.check && loop(p, signals))
			code = EXIT_INTERNAL;
		if (!options.check && p->bye)
			say_bye(p);
	}
	unload(p);
	return code;
}
