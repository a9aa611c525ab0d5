# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# LVM: volumes, physical volumes and the sizes of caches. README.md explains the rules.

readonly MIB=1048576 KIB=1024
# 16 bytes for the mapping and up to 28 for the policy's hint (lvm2, lib/metadata/cache_manip.c).
readonly CHUNK_METADATA_BYTES=44
readonly CHUNK_BYTES_MIN=$((64 * KIB))
# Memory of dm-writecache per block, measured: struct wc_entry and wc_memory_entry.
readonly WRITECACHE_ENTRY_BYTES=90
LVM_LOCKS=${EBBGATE_LVM_LOCKS:-/run/lock/lvm}
LVM_LOCK_SECONDS=${EBBGATE_LVM_LOCK_SECONDS:-60}

# report COMMAND FIELDS [ARGUMENT...]: lines of lvs, pvs or vgs, fields separated by `|`, in bytes.
report() {
    local command=$1 fields=$2
    shift 2
    "$command" --noheadings --nosuffix --units b --separator '|' -o "$fields" "$@" 2>/dev/null |
        sed 's/^ *//'
}

# split_name VG/LV: sets VG and LV.
split_name() {
    local name=${1#/dev/}
    [[ $1 != /dev/mapper/* && $name =~ ^[A-Za-z0-9+_.][A-Za-z0-9+_.-]*/[A-Za-z0-9+_.][A-Za-z0-9+_.-]*$ ]] ||
        die usage "not a volume name: $1" "use VG/LV; lvs lists them"
    VG=${name%/*} LV=${name#*/}
}

# Read once for the whole volume group, since each LVM command is slow; a line for each segment.
GROUP_FIELDS=(lv_name lv_layout lv_active pool_lv vg_extent_size vg_missing_pv_count
    cache_mode cache_policy chunk_size cache_settings lv_size devices)

# unlocked: waits up to a minute for another LVM command on $VG. LVM itself would wait without a
# message and without a limit.
unlocked() {
    local lock=$LVM_LOCKS/V_$VG
    if [[ ! -e $lock ]] || flock --shared --nonblock "$lock" true; then return; fi
    say "waiting for another command of LVM on $VG"
    flock --shared --timeout "$LVM_LOCK_SECONDS" "$lock" true ||
        die not_here "another command of LVM holds the lock of $VG" "fuser -v $lock names it"
}

# read_volume: reads $VG and the facts about $LV; ends if the volume does not exist.
read_volume() {
    local fields why missing
    unlocked
    fields=$(IFS=, && echo "${GROUP_FIELDS[*]}")
    if ! GROUP=$(report lvs "$fields" -a "$VG"); then
        why=$(lvs "$VG" 2>&1 >/dev/null) || true
        if [[ $why == *'not found'* ]]; then die no_such "no volume group $VG" "vgs lists them"; fi
        die not_here "a check failed: lvs cannot read $VG" "lvs -a -o $fields $VG"
    fi
    GROUP=${GROUP//[][]/}
    LAYOUT=$(fact "$LV" lv_layout)
    [[ -n $LAYOUT ]] || die no_such "no volume $VG/$LV" "lvs lists them"
    missing=$(fact "$LV" vg_missing_pv_count)
    [[ $missing == 0 ]] || die not_here "a device of the volume group $VG is missing" "pvs shows which"
    EXTENT_BYTES=$(fact "$LV" vg_extent_size)
    [[ $EXTENT_BYTES =~ ^[1-9][0-9]{0,17}$ ]] ||
        die not_here "a check failed: lvs prints no extent size for $VG" "lvs -o vg_extent_size $VG"
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

# may_be_cached: refuses volumes that have layers of their own.
may_be_cached() {
    case $LAYOUT in
    linear | striped | raid* | mirror*) ;;
    *cache*) die usage "$VG/$LV has a cache already" "stack-status shows it" ;;
    *) die usage "$VG/$LV is $LAYOUT: only linear, striped and raid volumes can get a cache" ;;
    esac
}

# needs_active: refuses an inactive volume, since progress and checks read the running table.
needs_active() {
    [[ -n $(fact "$LV" lv_active) ]] || die usage "$VG/$LV is not active" "lvchange -ay $VG/$LV"
}

PV_FIELDS=pv_major,pv_minor,vg_name,vg_extent_size,pv_pe_count,pv_pe_alloc_count

# pv_line DEVICE: its line of pvs, found by number; nothing if it is not a physical volume.
pv_line() {
    local number table
    number=$(device_number "$1")
    table=$(report pvs "$PV_FIELDS") || die not_here "a check failed: pvs" "pvs -o $PV_FIELDS"
    awk -F '|' -v number="$number" '$1 ":" $2 == number' <<<"$table"
}

# refuse_as_cache DEVICE: refuses a device that $VG/$LV itself lies on, and a slower one.
refuse_as_cache() {
    local number one names
    local -a below
    names=$(pvs_of "$LV")
    mapfile -t below <<<"$names"
    number=$(device_number "$1")
    for one in "${below[@]}"; do
        [[ $(device_number "$one") != "$number" ]] ||
            die usage "$VG/$LV is on $1 itself, which would be its own cache" "use a faster device"
    done
    refuse_swapped "$1" "${below[@]}"
}

# cache_device DEVICE: checks that it may be used; sets PV_IS_NEW and FREE_BYTES.
cache_device() {
    local line vg pe_bytes count used size_bytes hint=''
    size_bytes=$(device_bytes "$1")
    line=$(pv_line "$1")
    IFS='|' read -r _ _ vg pe_bytes count used <<<"$line"
    PV_IS_NEW=0
    if [[ -n $vg && $vg == "$VG" ]]; then
        [[ "$pe_bytes $count $used" =~ ^[0-9]+\ [0-9]+\ [0-9]+$ ]] ||
            die not_here "a check failed: pvs prints no sizes for $1" "pvs -o $PV_FIELDS"
        FREE_BYTES=$(((count - used) * pe_bytes))
        return
    fi
    if [[ -n $vg ]]; then in_other_group "$1" "$vg"; fi
    refuse_in_use "$1"
    if [[ -n $line ]]; then hint="it is a physical volume without a volume group; pvremove $1 makes it blank"; fi
    check_signatures "$1" "$hint"
    refuse_physical_volumes "$1"
    PV_IS_NEW=1
    # LVM starts the data at 1 MiB, or at the alignment of the device if that is more.
    FREE_BYTES=$(((size_bytes - MIB) / EXTENT_BYTES * EXTENT_BYTES))
}

# question_about DEVICE: what a person confirms. A physical volume of $VG keeps what is on it.
question_about() {
    if ((PV_IS_NEW)); then
        echo "All data on $1 will be lost."
    else
        echo "$VG/$LV gets a cache in the free space of $1."
    fi
}

# refuse_physical_volumes DEVICE: refuses a device, also with --force, if it or one of its partitions is
# a physical volume of a volume group or one that LVM does not show. If no volume of the group is
# active, the kernel does not list it as in use.
refuse_physical_volumes() {
    local one line vg found
    ((force)) || return 0
    while IFS= read -r one; do
        found=$(signatures_of "$one")
        if [[ $found != *,LVM2_member* ]]; then continue; fi
        need pvs
        line=$(pv_line "$one")
        [[ -n $line ]] || die usage \
            "$one is a physical volume that LVM does not show (a filter, or the devices file)" \
            "make it visible to LVM, or stop using it there; --force does not override this"
        IFS='|' read -r _ _ vg _ <<<"$line"
        if [[ -n $vg ]]; then in_other_group "$one" "$vg"; fi
    done <<<"$(printf '%s\n' "$1" && partitions_of "$1")"
}

# in_other_group DEVICE VG: refuses a physical volume.
in_other_group() {
    die usage "$1 belongs to the volume group $2" "remove it from there first: vgreduce $2 $1"
}

# add_pv DEVICE: steps that add the device to the volume group. Without --yes, pvcreate refuses a
# signature that appeared after the check.
add_pv() {
    if ((!PV_IS_NEW)); then return; fi
    wipe "$1"
    overwrites "$1"
    step "lacks_type $(quoted "$1") LVM2_member" "$1 is a physical volume without a volume group" \
        "$(quoted pvremove --yes "$1")" dry pvcreate "$1"
    step "! in_group $(quoted "$1")" "$1 is an empty physical volume of $VG" \
        "$(quoted vgreduce "$VG" "$1")" dry vgextend "$VG" "$1"
}

# in_group DEVICE: whether it is a physical volume of $VG; also true if that is not known.
in_group() {
    local line
    line=$(pv_line "$1") || return 0
    [[ $line == *"|$VG|"* ]]
}

# lv_absent NAME: whether $VG certainly has no volume of that name.
lv_absent() {
    local names
    names=$(report lvs lv_name -a "$VG") || return 1
    [[ $'\n'${names//[][ ]/}$'\n' != *$'\n'"$1"$'\n'* ]]
}

# lv_is FIELD PATTERN: whether a field of $VG/$LV matches now.
lv_is() {
    local text
    text=$(report lvs "$1" "$VG/$LV") || return 1
    # shellcheck disable=SC2053 # a pattern
    [[ $text == $2 ]]
}

# add_cache_lv NAME BYTES DEVICE: a step. The volume is inactive and not zeroed: LVM clears what it needs.
add_cache_lv() {
    step "lv_absent $1" "$VG/$1 exists and is not used" "$(quoted lvremove --yes "$VG/$1")" \
        dry lvcreate --yes -an -Zn -Wn -n "$1" -l "$(($2 / EXTENT_BYTES))" "$VG" "$3"
}

# free_name NAME: refuses a name that LVM does not take, or that is taken.
free_name() {
    [[ $1 =~ ^[A-Za-z0-9+_.][A-Za-z0-9+_.-]{0,126}$ && $1 != . && $1 != .. ]] ||
        die usage "not a name for a volume: $1" "use letters, digits and + _ . - with --name, at most 127"
    if [[ -n $(fact "$1" lv_layout) ]]; then
        die usage "$VG/$1 exists" "choose another name with --name, or use that volume with --cache-lv $1"
    fi
}

# read_chunks_max: the limit of lvm2: a million, unless lvm.conf sets another.
read_chunks_max() {
    CHUNKS_MAX=$(lvmconfig --typeconfig full allocation/cache_pool_max_chunks 2>/dev/null) || true
    CHUNKS_MAX=${CHUNKS_MAX##*=}
    [[ $CHUNKS_MAX =~ ^[1-9][0-9]*$ ]] || CHUNKS_MAX=1000000
}

# chunk_bytes CACHE_BYTES: the smallest power of two from 64 KiB that stays within the limit.
chunk_bytes() {
    local chunk=$CHUNK_BYTES_MIN
    while (($1 / chunk > CHUNKS_MAX)); do chunk=$((chunk * 2)); done
    echo "$chunk"
}

# check_chunk CHUNK_BYTES CACHE_BYTES: refuses what the kernel or lvm2 refuse.
check_chunk() {
    if (($1 % (32 * KIB) || $1 < 32 * KIB || $1 > 1024 * MIB)); then
        die usage "chunks of $(human "$1") are not possible" "use a multiple of 32k, from 32k to 1g"
    fi
    if (($2 / $1 > CHUNKS_MAX)); then
        die usage "$(($2 / $1)) chunks are too many; the limit is $CHUNKS_MAX" \
            "use --chunk $(short_size "$(chunk_bytes "$2")") or larger"
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

# pvs_of LV: the devices of it and of its hidden parts (data and metadata of a pool, images of a raid).
pvs_of() {
    awk -F '|' -v lv="$1" '
        function walk(name,    parts, count, i) {
            count = split(devices[name], parts, ",")
            for (i = 1; i <= count; i++) {
                if (!sub(/\([0-9]+\)$/, "", parts[i])) continue
                if (parts[i] ~ /^\/dev\//) print parts[i]
                else if (parts[i] != name) walk(parts[i])
            }
        }
        { gsub(/ /, "", $NF); devices[$1] = devices[$1] "," $NF }
        END { walk(lv); walk(lv "_cdata"); walk(lv "_cmeta") }' <<<"$GROUP" | sort -u | grep . ||
        die not_here "no device of $VG/$1 is known" "lvs -a -o +devices"
}

# Whether a detach removes the cache volume (--remove) and frees its devices (--free).
remove=0 free=0

# others_on DEVICE: the volumes of $VG on it except the cache volume $POOL and its parts. LVM removes
# the spare for repairs together with the last pool.
others_on() {
    awk -F '|' -v device="$1" -v pool="$POOL" '
        $1 == pool || index($1, pool "_c") == 1 || index($1, pool "_r") == 1 { next }
        $2 ~ /pool/ { pools = 1 }
        {
            count = split($NF, parts, ",")
            for (i = 1; i <= count; i++) {
                gsub(/ /, "", parts[i])
                if (sub(/\([0-9]+\)$/, "", parts[i]) && parts[i] == device) on[$1] = 1
            }
        }
        END { for (name in on) if (pools || name !~ /_pmspare$/) print name }' <<<"$GROUP" |
        sort | paste -sd ' '
}

# plan_take_away DEVICE...: decides, before the first step, which devices leave $VG (--free).
plan_take_away() {
    local device
    declare -gA others=()
    for device in "$@"; do others[$device]=$(others_on "$device"); done
}

# take_away NAME DEVICE...: steps that remove the cache volume and then its devices from $VG, if the
# options say so.
take_away() {
    local device
    complete="$VG/$LV has no cache any more; all its data is on its own devices"
    commit "$complete; $VG/$1 is unused"
    if ((!remove)); then return; fi
    stop_if_interrupted
    commit "$complete; $VG/$1 may be removed"
    dry lvremove --yes "$VG/$1"
    commit "$complete; $VG/$1 is removed"
    if ((!free)); then return; fi
    for device in "${@:2}"; do
        if [[ -n ${others[$device]} ]]; then
            note "$device stays in $VG: ${others[$device]} on it"
        else
            free_pv "$device"
        fi
    done
}

# free_pv DEVICE: steps that remove it from $VG and make it blank.
free_pv() {
    local used
    if ((!dry_run)); then
        used=$(report pvs pv_pe_alloc_count "$1") || used=unknown
        [[ $used == 0 ]] ||
            die failed "$1 stays in $VG: $used extents are in use" "pvs --segments -o +lv_name $1"
    fi
    step "in_group $(quoted "$1")" "$1 is a physical volume without a volume group" \
        "$(quoted vgextend "$VG" "$1")" dry vgreduce "$VG" "$1"
    step "! lacks_type $(quoted "$1") LVM2_member" "$1 is not a physical volume any more" \
        "$(quoted pvcreate "$1")" dry pvremove --yes "$1"
    commit "$complete; the cache volume is removed, and $1 is blank"
}

# size_option: prints --size for the attach that undoes a detach of $POOL, or nothing: for a cache on
# several devices, and for a pool without a spare for repairs that goes with it, since the attach counts
# one. With all that is free on the device, the cache would have another size, and perhaps too many chunks.
size_option() {
    local bytes part
    if ((${#devices[@]} != 1)); then return; fi
    bytes=$(fact "$POOL" lv_size)
    if [[ $(fact "$POOL" lv_layout) == *pool* ]]; then
        spare_goes || return 0
        part=$(fact "${POOL}_cmeta" lv_size)
        bytes=$((${bytes:-0} + 2 * ${part:-0}))
    fi
    if ((${bytes:-0} > 0)); then echo "--size $(short_size "$bytes")"; fi
}

# spare_goes: whether $VG has a spare for repairs on the cache device, and no pool but $POOL.
spare_goes() {
    awk -F '|' -v own="$POOL" -v device="${devices[0]}(" '
        $2 ~ /pool/ && $1 != own { other = 1 }
        $1 ~ /_pmspare$/ && index($NF, device) == 1 { spare = 1 }
        END { exit other || !spare }' <<<"$GROUP"
}

# take_cache_lv NAME: sets name for --cache-lv; refuses options that are for a volume that is made.
take_cache_lv() {
    [[ -z $name && -z $size && ${kind:-} != cachepool ]] || die usage \
        "--cache-lv takes the volume $VG/$1 as it is, without --name, --size or --cachepool" "try $PROGRAM --help"
    name=$1
}

# refuse_active_cache_lv: refuses a volume that somebody may use.
refuse_active_cache_lv() {
    if [[ -n $(fact "$name" lv_active) ]]; then
        die usage "$VG/$name is active and may be in use" "lvchange -an $VG/$name"
    fi
}

# lose_content: notes that the volume of --cache-lv loses its content.
lose_content() {
    next_step_loses "the old content of the cache volume $VG/$name is lost"
}

# how_to_detach DEVICE: the options of a detach that remove what the attach added.
how_to_detach() {
    if [[ -z $1 ]]; then return; fi
    if ((PV_IS_NEW)); then echo --free; else echo --remove; fi
}
