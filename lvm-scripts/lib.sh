# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034
# What all scripts share: options, errors, steps and their undos.
#
# A step is a command that changes something (dry, put, watched); `step` registers its undo. If the
# script ends early, for any reason, cleanup undoes the steps in reverse order; if that fails, it
# prints what is inconsistent and the commands that are left. Signals take effect after a step. All
# decisions are made before the first step, so that a dry run prints the commands of the real run.
set -euo pipefail
# A check that fails within $(...) must also end the script.
shopt -s inherit_errexit
export LC_ALL=C

# Tests use a recorded tree.
SYS=${EBBGATE_SYS:-/sys}
PROC=${EBBGATE_PROC:-/proc}
PROGRAM=${0##*/}
# How long to wait for something that the kernel usually does at once.
PATIENCE_SECONDS=${EBBGATE_PATIENCE_SECONDS:-20}
readonly SYS PROC PROGRAM PATIENCE_SECONDS
# The shell of a user has no sbin in PATH on Debian, and neither has one that `su` has made root.
if [[ $SYS == /sys ]]; then PATH+=:/usr/local/sbin:/usr/sbin:/sbin; fi

# The same as in the README of the project.
declare -rA EXIT_CODES=([usage]=64 [no_such]=66 [not_here]=69 [failed]=74 [root]=77 [interrupted]=130)

dry_run=0
assume_yes=0
force=0
interrupted=0
begun=0
orders=
answers=
undo_commands=()
undo_reasons=()
# What an undo does not restore, a sentence each.
not_as_before=()
step_loses=''
committed=0
ARGUMENTS=("$@")

# usage: prints the comment at the top of the script.
usage() { sed -n '/^# Usage:/,/^$/ { s/^# \{0,1\}//; p }' "$0"; }

# Must not fail when the reader is gone (`script | head`): it would stop a roll back.
say() { printf '%s\n' "$*" >&2 || true; }

# die WHY MESSAGE [NEXT STEP]: WHY is a key of EXIT_CODES; a line says what is wrong, another what to do.
die() {
    say "$PROGRAM: $2"
    if [[ -n ${3:-} ]]; then say "  $3"; fi
    exit "${EXIT_CODES[$1]}"
}

# need COMMAND...: ends unless each is installed; names also the commands of undos.
need() {
    local command
    for command in "$@"; do
        command -v "$command" >/dev/null ||
            die not_here "$command is not installed" "$(package_hint "$command")"
    done
}

package_hint() {
    case $1 in
    cache_check) echo "install the package thin-provisioning-tools" ;;
    make-bcache | bcache-super-show) echo "install the package bcache-tools" ;;
    lv* | pv* | vg*) echo "install the package lvm2" ;;
    dmsetup) echo "install the package dmsetup" ;;
    modprobe) echo "install the package kmod" ;;
    wipefs | blkid | flock | blockdev) echo "install the package util-linux" ;;
    *) echo "install the package that has $1" ;;
    esac
}

need_root() {
    ((dry_run)) || [[ $EUID -eq 0 || $SYS != /sys ]] || die root "needs root" "run it with sudo"
}

# common_option WORD: handles an option that all scripts have; false if it is not an option.
common_option() {
    case $1 in
    -n | --dry-run) dry_run=1 ;;
    -y | --yes) assume_yes=1 ;;
    --force) force=1 ;;
    -h | --help)
        usage
        exit 0
        ;;
    -*) die usage "unknown option $1" "try $PROGRAM --help" ;;
    *) return 1 ;;
    esac
}

# value_of OPTION [VALUE]: the value; ends if it is missing.
value_of() {
    [[ $# -ge 2 && -n $2 ]] || die usage "$1 needs a value" "try $PROGRAM --help"
    printf '%s' "$2"
}

# bytes_of SIZE: 64k, 1m, 2g, 1t in powers of 1024; a bare number is bytes. Above 0, below 1024 PiB.
bytes_of() {
    local number=${1%[kKmMgGtT]} shift=0 bytes=0
    case ${1##*[0-9]} in
    k | K) shift=10 ;;
    m | M) shift=20 ;;
    g | G) shift=30 ;;
    t | T) shift=40 ;;
    esac
    if [[ $number =~ ^[0-9]{1,15}$ ]] && ((10#$number < 1 << (60 - shift))); then
        bytes=$((10#$number << shift))
    fi
    ((bytes > 0)) ||
        die usage "not a size: $1" "use a whole number above 0 with k, m, g or t, such as 64k"
    echo "$bytes"
}

# seconds_of TEXT: a whole number above 0.
seconds_of() {
    [[ $1 =~ ^[1-9][0-9]{0,8}$ ]] || die usage "not a number of seconds: $1"
    echo "$1"
}

# human BYTES: for people, with one decimal.
human() {
    awk -v b="$1" 'BEGIN {
        split("B KiB MiB GiB TiB", u); i = 1
        while (b >= 1024 && i < 5) { b /= 1024; i++ }
        printf (i == 1 || b == int(b)) ? "%d %s" : "%.1f %s", b, u[i] }'
}

# short_size BYTES: in the form of bytes_of, in the largest unit that is exact.
short_size() {
    local bytes=$1 unit
    for unit in '' k m g; do
        if ((bytes % 1024 || bytes == 0)); then break; fi
        [[ $unit == g ]] || bytes=$((bytes / 1024))
    done
    echo "$bytes$unit"
}

round_up() { echo "$((($1 + $2 - 1) / $2 * $2))"; }

# quoted WORD...: a command line that can be pasted into a shell.
quoted() {
    local word line=()
    for word in "$@"; do
        if [[ $word =~ ^[A-Za-z0-9_./:=,@%+-]+$ ]]; then line+=("$word"); else line+=("${word@Q}"); fi
    done
    echo "${line[*]}"
}

# show LINE: prints a command before it runs, or instead with --dry-run.
show() {
    if ((dry_run)); then printf '%s\n' "$1"; else say "+ $1"; fi
}

# note TEXT: prints a decision, also in a dry run.
note() {
    if ((dry_run)); then printf '# %s\n' "$1"; else say "$1"; fi
}

# dry COMMAND...: a step: runs the command, or only prints it with --dry-run.
dry() {
    stop_if_interrupted
    show "$(quoted "$@")"
    ((dry_run)) || uninterrupted "$@" || step_failed "failed: $(quoted "$@")"
}

# put VALUE FILE: a step: writes a value to a kernel file.
put() {
    stop_if_interrupted
    show "echo $1 > $2"
    ((dry_run)) || uninterrupted write_file "$1" "$2" || step_failed "the kernel refused $1 for $2"
}

# step UNCHANGED REASON UNDO COMMAND...: runs a step and registers UNDO; REASON says what is wrong if
# UNDO fails. A step that fails may still have changed something, so it is undone, too, unless the
# command UNCHANGED succeeds, which proves that nothing has changed.
step() {
    local step_unchanged=$1 step_reason=$2 step_undo=$3
    shift 3
    "$@"
    step_done
}

# step_done: registers the undo of the last step.
step_done() {
    undo "$step_reason" "$step_undo"
    if [[ -n $step_loses ]]; then cannot_restore "$step_loses"; fi
    step_loses=''
}

# step_failed MESSAGE [NEXT STEP]: ends the script after a step that failed.
step_failed() {
    undo_failed_step
    die failed "$@"
}

# undo_failed_step: registers the undo of a step that failed, unless it has changed nothing.
undo_failed_step() {
    if [[ -z ${step_undo:-} ]]; then return; fi
    if ! (trap - EXIT && eval "$step_unchanged") >/dev/null 2>&1; then step_done; fi
}

write_file() { printf '%s\n' "$1" 2>/dev/null >"$2"; }

# uninterrupted COMMAND...: runs a command to its end even if signals come; they are noted. The worker
# runs it, with the variables as they were when the worker started.
uninterrupted() {
    local IFS=' ' status
    if [[ -z $orders ]]; then
        "$@"
        return
    fi
    { printf '%s\n' "${*@Q}" >&"$orders"; } 2>/dev/null || return 1
    read -r status <&"$answers" || return 1
    return "$status"
}

# start_worker: starts the process that runs the steps. It reports that it is ready when it ignores
# signals, and its children inherit that, so no signal interrupts a step. This process notes signals
# all the time, so none is lost. (Its own children would either not ignore signals, or it would have
# to ignore them, too.)
start_worker() {
    local printed ready
    exec {printed}>&1
    coproc WORKER { run_worker "$printed"; }
    exec {printed}>&-
    orders=${WORKER[1]} answers=${WORKER[0]}
    read -r ready <&"$answers" || die failed "the process that runs the steps did not start"
}

# run_worker FD: reads commands and runs them. Their output goes to FD.
run_worker() {
    local printed=$1 order status
    trap - EXIT
    trap '' INT TERM HUP
    echo ready
    while read -r order; do
        status=0
        (eval "$order") </dev/null >&"$printed" {printed}>&- || status=$?
        echo "$status"
    done
}

# undo REASON LINE: registers the command LINE as undo; REASON says what is wrong if it fails.
undo() {
    undo_reasons+=("$1")
    undo_commands+=("$2")
}

# commit WHAT: drops all undos so far. WHAT says what stays changed if the script ends early.
commit() {
    undo_commands=()
    undo_reasons=()
    not_as_before=("$1")
    committed=1
}

# cannot_restore WHAT: a sentence about what stays changed after a roll back.
cannot_restore() { ((dry_run)) || not_as_before+=("$1"); }

# next_step_loses WHAT: the same, if the next `step` is done.
next_step_loses() { step_loses=$1; }

# begin: from here on an early end is cleaned up and signals take effect after a step.
begin() {
    ((dry_run)) && return
    begun=1
    trap cleanup EXIT
    trap 'interrupted=1' INT TERM HUP
    trap '' PIPE
    start_worker
}

stop_if_interrupted() {
    if ((interrupted)); then die interrupted "interrupted"; fi
}

cleanup() {
    local code=$?
    trap '' INT TERM HUP
    trap - EXIT
    # bash 5.2 exits with 2 if a signal comes while it reads `$(...)`: the trap is then a syntax error.
    # Nothing else here exits with 2.
    if ((code == 2)); then
        say "$PROGRAM: interrupted"
        interrupted=1
    fi
    if ((interrupted && code != 0)); then code=${EXIT_CODES[interrupted]}; fi
    if ((code != 0)); then roll_back; fi
    exit "$code"
}

roll_back() {
    local i
    for ((i = ${#undo_commands[@]} - 1; i >= 0; i--)); do
        say "undo: ${undo_commands[i]}"
        if ! eval "${undo_commands[i]}"; then
            inconsistent "$i"
            return
        fi
    done
    ((begun)) || return 0
    if ((${#not_as_before[@]})); then
        say "NOT as it was before this run:"
        list_not_as_before
        say "everything else that this run changed is as it was before"
    else
        say "everything that this run changed is as it was before"
    fi
    if ((!committed)); then
        say "to try again:"
        say "  $(quoted "$0" "${ARGUMENTS[@]}")"
    fi
}

list_not_as_before() {
    local text
    for text in "${not_as_before[@]}"; do say "  $text"; done
}

inconsistent() {
    local i
    say "INCONSISTENT: ${undo_reasons[$1]}"
    list_not_as_before
    say "To undo the rest by hand, in this order:"
    for ((i = $1; i >= 0; i--)); do say "  ${undo_commands[i]}"; done
}

# confirm QUESTION: asks on a terminal; without one, --yes is required.
confirm() {
    local answer=
    ((dry_run || assume_yes)) && return
    [[ -t 0 ]] ||
        die usage "not confirmed: $1" "add --yes, or --dry-run to see the commands"
    read -rp "$1 Continue? [y/N] " answer || true
    [[ $answer == [yY] || $answer == [yY]es ]] || die interrupted "nothing was changed"
}

# keep_undo: from here on, a signal to the process group no longer ends the subshell that prints the
# command to undo everything.
keep_undo() {
    trap '' INT TERM HUP
}

# finish DONE UNDO: prints the result and the command that undoes it.
finish() {
    if ((!dry_run)); then
        commit "$1"
        say "$1"
    fi
    printf '# to undo: %s\n' "$2" || true
}

# wait_for SECONDS COMMAND...: waits until the command succeeds; false after that time.
wait_for() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        if ((SECONDS >= deadline)); then return 1; fi
        sleep 0.1
    done
}

# output_of COMMAND...: the output of a tool. Ends if it fails, because then a check cannot be made.
output_of() {
    "$@" 2>/dev/null ||
        die not_here "a check failed: $(quoted "$@")" "run it by hand to see why"
}

# number_from COMMAND...: a whole number that a tool prints.
number_from() {
    local text
    text=$(output_of "$@") || exit
    [[ $text =~ ^[0-9]{1,18}$ ]] ||
        die not_here "a check failed: $(quoted "$@") does not print a number" "run it by hand to see why"
    echo "$text"
}

# sibling NAME: the path of another script, relative to this one.
sibling() { quoted "$(dirname "$0")/$1"; }

lib_folder=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=lib-device.sh
. "$lib_folder/lib-device.sh"
# shellcheck source=lib-dm.sh
. "$lib_folder/lib-dm.sh"
# shellcheck source=lib-progress.sh
. "$lib_folder/lib-progress.sh"
# shellcheck source=lib-lvm.sh
. "$lib_folder/lib-lvm.sh"
# shellcheck source=lib-bcache.sh
. "$lib_folder/lib-bcache.sh"
