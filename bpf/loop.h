/* SPDX-License-Identifier: GPL-2.0-only */
/* The event loop: commands, signals, pushes of the programs and timers become records. */
#ifndef EBBGATE_LOOP_H
#define EBBGATE_LOOP_H

#include "state.h"

/* The callback of the ring buffer. */
int on_push(void *probe, void *data, size_t bytes);

/* Blocks the signals that end the probe; returns the file descriptor that reports them, or -1. */
int open_signals(void);

void run_command(struct probe *p, const char *line);

/* Runs until p->stop_reason is set. Returns 0 or -errno. */
int run_loop(struct probe *p, int signals);

#endif
