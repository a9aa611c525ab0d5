# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Volumes, physical volumes and the sizes of caches in LVM. The rules are in README.md.

readonly MIB=1048576 KIB=1024
# 16 bytes for the mapping and up to 28 for the policy's hint (lvm2, lib/metadata/cache_manip.c).
readonly CHUNK_METADATA_BYTES=44
readonly CHUNK_BYTES_MIN=$((64 * KIB))
# What dm-writecache keeps in memory for each block: struct wc_entry and wc_memory_entry; measured.
readonly WRITECACHE_ENTRY_BYTES=90
LVM_LOCKS=${EBBGATE_LVM_LOCKS:-/run/lock/lvm}
LVM_LOCK_SECONDS=${EBBGATE_LVM_LOCK_SECONDS:-60}

# report COMMAND FIELDS [ARGUMENT...]: one line of lvs, pvs or vgs, fields divided by `|`, in bytes.
report() {
    local command=$1 fields=$2
    shift 2
    "$command" --noheadings --nosuffix --units b --separator '|' -o "$fields" "$@" 2>/dev/null |
        sed 's/^ *//'
}

# split_name VG/LV: sets VG and LV.
split_name() {
    local name=${1#/dev/}
    [[ $name =~ ^[A-Za-z0-9+_.][A-Za-z0-9+_.-]*/[A-Za-z0-9+_.][A-Za-z0-9+_.-]*$ ]] ||
        die usage "not a volume's name: $1" "as VG/LV; lvs lists them"
    VG=${name%/*} LV=${name#*/}
}

# One look at the whole volume group, since each call of LVM takes its time; a line for each segment.
GROUP_FIELDS=(lv_name lv_layout lv_active pool_lv vg_extent_size vg_missing_pv_count
    cache_mode cache_policy chunk_size cache_settings devices)

# unlocked: waits, at most a minute, for another command of LVM on $VG. LVM itself would wait in
# silence and without an end.
unlocked() {
    local lock=$LVM_LOCKS/V_$VG
    if [[ ! -e $lock ]] || flock --shared --nonblock "$lock" true; then return; fi
    say "waiting for another command of LVM on $VG"
    flock --shared --timeout "$LVM_LOCK_SECONDS" "$lock" true ||
        die not_here "another command of LVM holds the lock of $VG" "fuser -v $lock names it"
}

# read_volume: looks at $VG; sets what there is to know of $LV; ends if it is not there.
read_volume() {
    local fields
    unlocked
    fields=$(IFS=, && echo "${GROUP_FIELDS[*]}")
    GROUP=$(report lvs "$fields" -a "$VG" | sed 's/[][]//g') || GROUP=''
    LAYOUT=$(fact "$LV" lv_layout)
    [[ -n $LAYOUT ]] || die no_such "no volume $VG/$LV" "lvs lists them"
    if [[ $(fact "$LV" vg_missing_pv_count) != 0 ]]; then
        die not_here "the volume group $VG misses a device" "pvs shows which"
    fi
    EXTENT_BYTES=$(fact "$LV" vg_extent_size)
    DM=$(dm_name "$VG" "$LV")
}

# fact LV FIELD: one of GROUP_FIELDS; empty if there is no such volume.
fact() {
    local line i
    while IFS= read -r line; do
        local -a words_of_line=()
        IFS='|' read -ra words_of_line <<<"$line"
        [[ ${words_of_line[0]:-} == "$1" ]] || continue
        for i in "${!GROUP_FIELDS[@]}"; do
            if [[ ${GROUP_FIELDS[i]} == "$2" ]]; then echo "${words_of_line[i]:-}"; fi
        done
        return
    done <<<"$GROUP"
}

# may_be_cached: only plain volumes; what has layers of its own is for an expert.
may_be_cached() {
    case $LAYOUT in
    linear | striped | raid* | mirror*) ;;
    *cache*) die usage "$VG/$LV has a cache already" "stack-status shows it" ;;
    *) die usage "$VG/$LV is $LAYOUT: only linear, striped and raid volumes are cached here" ;;
    esac
}

# needs_active: progress and checks read the running table.
needs_active() {
    [[ -n $(fact "$LV" lv_active) ]] || die usage "$VG/$LV is not active" "lvchange -ay $VG/$LV"
}

# cache_device DEVICE: whether it may be used; sets PV_IS_NEW and FREE_BYTES.
cache_device() {
    local fields vg pe_bytes count used
    local size_bytes
    size_bytes=$(device_bytes "$1")
    fields=$(report pvs vg_name,vg_extent_size,pv_pe_count,pv_pe_alloc_count "$1" || true)
    IFS='|' read -r vg pe_bytes count used <<<"$fields"
    PV_IS_NEW=0
    if [[ -n $vg && $vg == "$VG" ]]; then
        FREE_BYTES=$(((count - used) * pe_bytes))
        return
    fi
    if [[ -n $vg ]]; then
        die usage "$1 belongs to the volume group $vg" "free it with vgreduce $vg $1 first"
    fi
    refuse_in_use "$1"
    refuse_signature "$1"
    PV_IS_NEW=1
    # LVM starts the data at 1 MiB, or at the device's own alignment if that is more.
    FREE_BYTES=$(((size_bytes - MIB) / EXTENT_BYTES * EXTENT_BYTES))
}

# add_pv DEVICE: steps that bring the device into the volume group.
add_pv() {
    if ((!PV_IS_NEW)); then return; fi
    wipe "$1"
    dry pvcreate --yes "$1"
    undo "$1 is a physical volume of no volume group" "$(quoted pvremove --yes "$1")"
    dry vgextend "$VG" "$1"
    undo "$1 is an empty physical volume of $VG" "$(quoted vgreduce "$VG" "$1")"
}

# add_cache_lv NAME BYTES DEVICE: a step; not active and not zeroed, since LVM clears what it needs.
add_cache_lv() {
    dry lvcreate --yes -an -Zn -Wn -n "$1" -l "$(($2 / EXTENT_BYTES))" "$VG" "$3"
    undo "$VG/$1 exists and is not used" "$(quoted lvremove --yes "$VG/$1")"
}

# free_name NAME: ends if the volume group has one of this name.
free_name() {
    if [[ -n $(fact "$1" lv_layout) ]]; then
        die usage "$VG/$1 exists" "--name for another name, --cache-lv $1 to use that volume"
    fi
}

# read_chunks_max: lvm2's own limit; a million, unless lvm.conf says otherwise.
read_chunks_max() {
    CHUNKS_MAX=$(lvmconfig --typeconfig full allocation/cache_pool_max_chunks 2>/dev/null) || true
    CHUNKS_MAX=${CHUNKS_MAX##*=}
    [[ $CHUNKS_MAX =~ ^[1-9][0-9]*$ ]] || CHUNKS_MAX=1000000
}

# chunk_bytes CACHE_BYTES: the smallest power of two from 64 KiB on that keeps to the limit.
chunk_bytes() {
    local chunk=$CHUNK_BYTES_MIN
    while (($1 / chunk > CHUNKS_MAX)); do chunk=$((chunk * 2)); done
    echo "$chunk"
}

# check_chunk CHUNK_BYTES CACHE_BYTES: what the kernel and lvm2 take.
check_chunk() {
    if (($1 % (32 * KIB) || $1 < 32 * KIB || $1 > 1024 * MIB)); then
        die usage "a chunk of $(human "$1")" "a multiple of 32k, from 32k to 1g"
    fi
    if (($2 / $1 > CHUNKS_MAX)); then
        die usage "$(($2 / $1)) chunks are more than $CHUNKS_MAX" \
            "--chunk $(short_size "$(chunk_bytes "$2")") or larger"
    fi
}

# metadata_bytes CACHE_BYTES CHUNK_BYTES: 4 MiB for transactions and 44 bytes for each chunk,
# at least 8 MiB, in whole extents.
metadata_bytes() {
    local chunks=$(($1 / $2)) bytes
    bytes=$((4 * MIB + chunks * CHUNK_METADATA_BYTES))
    if ((bytes < 8 * MIB)); then bytes=$((8 * MIB)); fi
    round_up "$(round_up "$bytes" "$MIB")" "$EXTENT_BYTES"
}

# pvs_of LV: the devices on which it and its hidden parts (data and metadata of a pool) lie.
pvs_of() {
    awk -F '|' -v lv="$1" '
        { gsub(/ /, "", $NF) }
        $1 == lv || $1 == lv "_cdata" || $1 == lv "_cmeta" {
            count = split($NF, devices, ",")
            for (i = 1; i <= count; i++)
                if (devices[i] ~ /^\/dev\// && sub(/\([0-9]+\)$/, "", devices[i])) print devices[i]
        }' <<<"$GROUP" | sort -u | grep . || die not_here "no device of $VG/$1 is known" "lvs -a -o +devices"
}

# pv_allocated_extents DEVICE: as of now.
pv_allocated_extents() { report pvs pv_pe_alloc_count "$1"; }

# What is to become of the cache volume after a detach (--remove, --free).
remove=0 free=0

# take_away NAME DEVICE...: steps, if asked for: the cache volume goes, then its devices from $VG.
take_away() {
    local device
    if ((remove)); then dry lvremove --yes "$VG/$1"; fi
    if ((!free)); then return; fi
    for device in "${@:2}"; do
        if ((!dry_run)) && [[ $(pv_allocated_extents "$device") != 0 ]]; then
            say "$device stays in $VG: other volumes are on it"
            continue
        fi
        dry vgreduce "$VG" "$device"
        undo "$device is a physical volume of no volume group" "$(quoted vgextend "$VG" "$device")"
        dry pvremove --yes "$device"
        commit
    done
}

# how_to_detach DEVICE: the options that take away what an attach has brought.
how_to_detach() {
    if [[ -z $1 ]]; then return; fi
    if ((PV_IS_NEW)); then echo --free; else echo --remove; fi
}
