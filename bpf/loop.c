// SPDX-License-Identifier: GPL-2.0-only
#include "loop.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "attribution_record.h"
#include "clock.h"
#include "counters.h"
#include "edges.h"
#include "heat_record.h"
#include "in_flight.h"
#include "programs.h"
#include "queue.h"
#include "records.h"
#include "sysfs.h"
#include "tick_record.h"
#include "track.h"

/* The kernel sends it when the parent dies: SIGTERM comes from a person. */
#define SIG_PARENT SIGUSR1
#define INPUT_BYTES 4096

struct input {
	char text[INPUT_BYTES];
	size_t len;
	bool too_long; /* the line that begins the text is the rest of one that was refused */
};

static void track_and_report(struct probe *p, const struct command *cmd, const char *line)
{
	const char *error = track(p, cmd);

	write_signals(p);
	if (error)
		write_error(p, error, line);
	else
		write_track(p, volume_named(p, cmd->name));
}

static void untrack_and_report(struct probe *p, struct volume *v, const char *why)
{
	forget_pieces(p, v);
	untrack(p, v);
	write_heat(p, v, now_ns());
	end_attribution(p, v, now_ns());
	write_untrack(p, v, why);
}

/* The commands that name a tracked volume. Returns NULL or an error text. */
static const char *run_on_volume(struct probe *p, const struct command *cmd)
{
	struct volume *v = volume_named(p, cmd->name);

	if (!v)
		return "not tracked";
	if (cmd->verb == VERB_PACE)
		return set_pace(p, v, cmd);
	if (cmd->verb == VERB_WAIT)
		set_wait(v, cmd->ns);
	else
		untrack_and_report(p, v, "requested");
	return NULL;
}

void run_command(struct probe *p, const char *line)
{
	struct command cmd;
	const char *error = command_parse(line, &cmd);

	if (!error) {
		switch (cmd.verb) {
		case VERB_TRACK:
			track_and_report(p, &cmd, line);
			break;
		case VERB_QUIT:
			p->stop_reason = "quit";
			break;
		case VERB_TICK:
			p->tick_ns = cmd.ns;
			p->next_tick_ns = now_ns() + cmd.ns;
			break;
		case VERB_UNTRACK:
		case VERB_WAIT:
		case VERB_PACE:
			error = run_on_volume(p, &cmd);
			break;
		}
	}
	if (error)
		write_error(p, error, line);
}

static void run_lines(struct probe *p, struct input *in)
{
	char *line = in->text, *end;

	while (!p->stop_reason && (end = memchr(line, '\n', in->text + in->len - line))) {
		*end = '\0';
		if (end != line && !in->too_long)
			run_command(p, line);
		in->too_long = false;
		line = end + 1;
	}
	in->len -= line - in->text;
	memmove(in->text, line, in->len);
	if (in->len == sizeof(in->text)) {
		if (!in->too_long)
			write_error(p, "line too long", "");
		in->too_long = true;
		in->len = 0;
	}
}

static void read_input(struct probe *p, struct input *in)
{
	ssize_t n = read(STDIN_FILENO, in->text + in->len, sizeof(in->text) - in->len);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		p->stop_reason = "stdin closed";
		return;
	}
	in->len += n;
	run_lines(p, in);
}

int open_signals(void)
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
	/* It may have died before prctl(). */
	if (getppid() != parent)
		raise(SIG_PARENT);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void read_signal(struct probe *p, int fd)
{
	struct signalfd_siginfo info;

	if (read(fd, &info, sizeof(info)) != sizeof(info))
		return;
	p->stop_reason = info.ssi_signo == SIG_PARENT ? "parent died" : "signal";
	p->json.stopping = true;
}

int on_push(void *probe, void *data, size_t bytes)
{
	struct probe *p = probe;
	const struct eb_edge *pushed = data;
	struct queue_sample sample;
	struct edge edge;
	struct volume *v;

	if (bytes < sizeof(*pushed) || pushed->volume >= EB_VOLUMES)
		return 0;
	v = &p->volume[pushed->volume];
	if (!v->used)
		return 0;
	if (pushed->kind == EB_EDGE_DRAINED && queue_drained(p, v, pushed->ns, &sample))
		write_queue(p, v, &sample, pushed->ns);
	if (pushed->kind == EB_EDGE_BUSY && take_busy_edge(v, pushed, &edge))
		write_edge(p, v, &edge);
	return 0;
}

static void check_volumes(struct probe *p)
{
	for_each_volume (v, p) {
		struct queue_sample sample;
		struct edge edge;
		uint64_t now;

		/* A push that came meanwhile must not be taken for a lost one. */
		ring_buffer__consume(p->ring);
		now = now_ns();
		if (check_edge(p, v, now, &edge))
			write_edge(p, v, &edge);
		if (check_queue(p, v, now, &sample))
			write_queue(p, v, &sample, now);
	}
}

static void tick(struct probe *p, uint64_t now)
{
	resync_after_misses(p, recursion_misses(p));
	for_each_volume (v, p) {
		struct eb_vol_cpu sum;

		if (!block_device_exists(v->dev)) {
			untrack_and_report(p, v, "vanished");
			continue;
		}
		sum_volume(p, v, &sum);
		correct_in_flight(p, v, &sum, now);
		correct_destage(p, v, now);
		write_reuse(p, v, now);
		check_heat(p, v, now);
		check_attribution(p, v, now);
		write_tick(p, v, &sum, now);
	}
	p->warning[WARN_RECURSION].n = p->misses;
	write_warnings(p, now);
}

static void scan_partitions(struct probe *p)
{
	for_each_volume (v, p) {
		const char *error = track_partitions(p, v);

		if (error)
			write_error(p, error, "");
	}
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
		scan_partitions(p);
		p->next_scan_ns = now + NS_PER_S;
	}
}

static uint64_t next_due(const struct probe *p)
{
	uint64_t due = p->next_tick_ns;

	for_each_volume (v, p) {
		if (v->check_ns < due)
			due = v->check_ns;
		if (v->pace_ns && v->queue_ns < due)
			due = v->queue_ns;
	}
	return due;
}

int run_loop(struct probe *p, int signals)
{
	static struct input in;
	struct pollfd fds[] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = signals, .events = POLLIN },
		{ .fd = ring_buffer__epoll_fd(p->ring), .events = POLLIN },
	};

	while (!p->stop_reason) {
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
		check_volumes(p);
		check_tick(p, now_ns());
	}
	return 0;
}
