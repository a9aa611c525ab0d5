# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Progress of write-back: how much is left, how fast it is, when it will be done.

# --timeout; 0: no limit.
seconds_max=0
progress_line_s=10

# progress_begin LEFT UNIT_BYTES
progress_begin() {
    progress_first=$1 progress_left=$1 progress_unit_bytes=$2
    progress_start=$SECONDS progress_shown=-1
    progress_print
}

# progress_show LEFT: one line that is rewritten on a terminal, in a log a line every ten seconds.
progress_show() {
    if [[ -n $1 ]]; then progress_left=$1; fi
    if [[ -t 2 ]]; then
        printf '\r\033[K' >&2
        printf '%s' "$(progress_text)" >&2
    elif ((SECONDS >= progress_shown + progress_line_s)); then
        progress_print
    fi
}

progress_print() {
    progress_shown=$SECONDS
    say "$(progress_text)"
}

# progress_end LEFT: the last line, unless there was nothing to do.
progress_end() {
    if [[ -n $1 ]]; then progress_left=$1; fi
    if [[ -t 2 ]]; then printf '\r\033[K' >&2; fi
    if ((progress_first > 0)); then progress_print; fi
}

progress_text() {
    local left_bytes=$((progress_left * progress_unit_bytes)) elapsed_s=$((SECONDS - progress_start))
    local done_bytes=$(((progress_first - progress_left) * progress_unit_bytes))
    printf '  %s dirty' "$(human "$left_bytes")"
    if ((elapsed_s == 0 || left_bytes == 0)); then return; fi
    if ((done_bytes <= 0)); then
        printf ', not decreasing yet'
        return
    fi
    printf ', %s/s, done in %s' "$(human "$((done_bytes / elapsed_s))")" \
        "$(duration "$((left_bytes * elapsed_s / done_bytes))")"
}

# duration SECONDS: 2 h 05 min, 3 min 20 s, 12 s
duration() {
    local s=$1
    if ((s >= 3600)); then
        printf '%d h %02d min' "$((s / 3600))" "$((s % 3600 / 60))"
    elif ((s >= 60)); then
        printf '%d min %02d s' "$((s / 60))" "$((s % 60))"
    else
        printf '%d s' "$s"
    fi
}

# late: whether --timeout has passed.
late() { ((seconds_max > 0 && SECONDS - progress_start >= seconds_max)); }

stop_if_late() {
    if late && ((progress_left > 0)); then
        die failed "still dirty after $seconds_max s (--timeout)" "use a longer --timeout, or try when there is less load"
    fi
}

# left_of COUNT: the number that COUNT prints, protected from signals; empty if unknown.
left_of() { (
    trap '' INT TERM HUP
    trap - EXIT
    "$@" 2>/dev/null || true
) || true; }

# watched UNIT_BYTES COMMAND... -- COUNT...: runs a step that may take hours and shows its progress.
# COUNT prints how many units are left. On an interrupt the command gets SIGINT and is waited for:
# LVM then restores the table.
watched() {
    local unit_bytes=$1 command=() child code=0 signalled=0 left
    shift
    while [[ $1 != -- ]]; do
        command+=("$1")
        shift
    done
    shift
    stop_if_interrupted
    show "$(quoted "${command[@]}")"
    if ((dry_run)); then return; fi
    left=$(left_of "$@")
    progress_begin "${left:-0}" "$unit_bytes"
    (trap - EXIT && exec "${command[@]}") &
    child=$!
    while kill -0 "$child" 2>/dev/null; do
        if { ((interrupted)) || late; } && ((!signalled)); then
            signalled=1
            kill -INT "$child" 2>/dev/null || true
        fi
        progress_show "$(left_of "$@")"
        sleep 0.5 || true
    done
    wait "$child" || code=$?
    # If it succeeded in spite of a signal, its undo is registered; the next step sees the signal.
    if ((code != 0)); then
        undo_failed_step
        stop_if_interrupted
        stop_if_late
        die failed "failed: $(quoted "${command[@]}")"
    fi
    progress_end "$(left_of "$@")"
}

# drained HOW UNIT_BYTES COUNT...: waits until nothing is dirty and shows the progress. In a dry run
# it prints HOW: what to wait for.
drained() {
    local how=$1 unit_bytes=$2
    shift 2
    if ((dry_run)); then
        show "# wait: $how"
        return
    fi
    local left known_at=$SECONDS
    left=$(left_of "$@")
    progress_begin "${left:-0}" "$unit_bytes"
    until [[ $left == 0 ]]; do
        stop_if_interrupted
        stop_if_late
        if [[ -n $left ]]; then known_at=$SECONDS; fi
        if ((SECONDS - known_at > PATIENCE_SECONDS)); then
            die failed "cannot read the amount of dirty data any more" "$how"
        fi
        progress_show "$left"
        sleep 0.5 || true
        left=$(left_of "$@")
    done
    progress_end 0
}
