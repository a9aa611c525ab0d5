# SPDX-License-Identifier: GPL-2.0-only
"""A simulated disk, cache and probe: what the control loop meets before it meets the lab.

Everything runs on one simulated clock, so minutes pass in milliseconds and every run is the same:

    clock      events in the order of their time
    disk       one head behind a device queue (the arithmetic of the lab's hard disk)
    writeback  bcache's writeback thread with its rate limit
    probe      the records of ebbgate-probe, as lines of its protocol
    hand       the gate thread: the plan's knob writes, each of which takes time
    simulation  all of it, with the real engine in the loop
    scenarios  loads with what is measured of them
"""
