# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Status of bcache volumes, with the same keys as in lib-dm.sh, and their sizes.

# bcache_bytes TEXT: bytes of 63.9M, which the kernel rounds to one digit (drivers/md/bcache/util.c).
bcache_bytes() {
    awk -v t="$1" 'BEGIN {
        n = index("kMGTPEZY", substr(t, length(t)))
        if (t ~ /[0-9]$/) n = 0
        # Not %d: the mawk of Debian 12 ends at 2 GiB.
        printf "%.0f", int((t + 0) * 1024 ^ n) }'
}

# knob FILE: its content; from a list of choices the chosen one. Empty if there is no such file.
knob() {
    local text=''
    if [[ -r $1 ]]; then read -r text <"$1" || true; fi
    if [[ $text == *\[*\]* ]]; then
        text=${text#*\[}
        text=${text%%\]*}
    fi
    echo "$text"
}

knob_is() { [[ $(knob "$1") == "$2" ]]; }

# read_bcache NAME: fills CACHE and PARTS for bcache0.
read_bcache() {
    local folder=$SYS/block/$1/bcache cache
    declare -gA CACHE=([target]=bcache [health]=ok)
    CACHE[state]=$(knob "$folder/state")
    CACHE[mode]=$(knob "$folder/cache_mode")
    CACHE[dirty_bytes]=$(bcache_bytes "$(knob "$folder/dirty_data")")
    CACHE[hits]=$(knob "$folder/stats_total/cache_hits")
    CACHE[misses]=$(knob "$folder/stats_total/cache_misses")
    CACHE[bypassed_bytes]=$(bcache_bytes "$(knob "$folder/stats_total/bypassed")")
    CACHE[writeback_percent]=$(knob "$folder/writeback_percent")
    CACHE[sequential_cutoff_bytes]=$(bcache_bytes "$(knob "$folder/sequential_cutoff")")
    if [[ ${CACHE[state]} == inconsistent ]]; then CACHE[health]=inconsistent; fi
    PARTS=()
    if [[ -e $folder/cache ]]; then
        CACHE[set_uuid]=$(basename "$(readlink -f "$folder/cache")")
        CACHE[bucket_bytes]=$(bcache_bytes "$(knob "$folder/cache/bucket_size")")
        CACHE[available_percent]=$(knob "$folder/cache/cache_available_percent")
        for cache in "$folder"/cache/cache[0-9]*; do
            part cache "$(basename "$(dirname "$(readlink -f "$cache")")")"
        done
    fi
    part backing "$(basename "$(dirname "$(readlink -f "$folder")")")"
}

# dirty_bytes_left FOLDER: 0 only if the state is clean, because the kernel rounds the amount.
dirty_bytes_left() {
    local bytes
    case $(knob "$1/state") in
    clean | 'no cache') echo 0 ;;
    dirty)
        bytes=$(bcache_bytes "$(knob "$1/dirty_data")")
        echo "$((bytes > 0 ? bytes : 1))"
        ;;
    *) return 1 ;;
    esac
}

# Where wipefs finds the superblock (sector 8, byte 24).
readonly BCACHE_MAGIC_OFFSET=0x1018
readonly BUCKETS_MIN=1024
readonly BUCKET_BYTES_DEFAULT=$((512 * 1024)) BUCKET_BYTES_MAX=$((16 << 20))

# bucket_bytes DEVICE_BYTES ERASE_BLOCK_BYTES: 512 KiB, doubled until it is a multiple of the erase
# block (if a power of two can be one), then halved until there are 1024 buckets.
bucket_bytes() {
    local bucket=$BUCKET_BYTES_DEFAULT
    if (($2 > 0)); then
        while ((bucket % $2 && bucket < BUCKET_BYTES_MAX)); do bucket=$((bucket * 2)); done
        if ((bucket % $2)); then bucket=$BUCKET_BYTES_DEFAULT; fi
    fi
    while (($1 / bucket < BUCKETS_MIN && bucket > 4096)); do bucket=$((bucket / 2)); done
    echo "$bucket"
}

# check_bucket BUCKET_BYTES DEVICE_BYTES: refuses what the kernel refuses (drivers/md/bcache/super.c).
check_bucket() {
    if (($1 < 4096 || $1 > BUCKET_BYTES_MAX || ($1 & ($1 - 1)))); then
        die usage "buckets of $(human "$1") are not possible" "use a power of two from 4k to 16m"
    fi
    if (($2 / $1 < BUCKETS_MIN)); then
        die usage "only $(($2 / $1)) buckets; bcache needs $BUCKETS_MIN" "use a smaller --bucket or a larger device"
    fi
}

# block_bytes BACKING CACHE: the larger sector of the two.
block_bytes() {
    local one other
    one=$(number_from blockdev --getss "$1")
    other=$(number_from blockdev --getss "$2")
    echo "$((one > other ? one : other))"
}

# set_block_bytes SET_UUID: the block size of a running set. The kernel prints 512 as 0.5k.
set_block_bytes() {
    local file=$SYS/fs/bcache/$1/block_size text
    text=$(text_of "$file")
    [[ $text =~ ^[0-9]+[.][0-9]k$ && $text != 0.0k ]] || die not_here "a check failed: $file is '$text'" "cat $file"
    bcache_bytes "$text"
}

# check_block BLOCK_BYTES SECTOR_BYTES: refuses what the kernel refuses (drivers/md/bcache/super.c), and
# blocks that are smaller than a sector.
check_block() {
    local most
    most=$(getconf PAGESIZE 2>/dev/null) || most=4096
    if (($1 > most || ($1 & ($1 - 1)))); then
        die usage "blocks of $(human "$1") are not possible" \
            "use a power of two from $(short_size "$2") to $(short_size "$most")"
    fi
    if (($1 < $2)); then
        die usage "blocks of $(human "$1") are smaller than the sectors of a device ($(human "$2"))" \
            "use at least --block $(short_size "$2"); an existing backing device keeps its blocks"
    fi
}

# set_is_absent BACKING FOLDER: refuses a backing device whose set is not registered: the kernel neither
# writes its data back nor detaches it.
set_is_absent() {
    local todo="register its cache device first: echo DEVICE > $SYS/fs/bcache/register"
    if [[ $(knob "$2/state") == clean ]]; then
        todo+=$'\n  '"if that is lost, no data is lost with it: echo 1 > $2/stop; then bcache-attach $(quoted "$1") NEW_CACHE"
    fi
    die not_here "the cache set of $1 is not registered; nothing was changed" "$todo"
}

# read_superblock DEVICE: fills SUPERBLOCK from bcache-super-show, for example [sb.version].
read_superblock() {
    local text name value
    declare -gA SUPERBLOCK=()
    text=$(output_of bcache-super-show "$1")
    while read -r name value; do
        if [[ -n $name ]]; then SUPERBLOCK[$name]=$value; fi
    done <<<"$text"
}

# check_backing_superblock DEVICE: refuses a device that is not a backing device, or whose data is not
# complete without its cache. The versions are those of include/uapi/linux/bcache.h.
check_backing_superblock() {
    read_superblock "$1"
    case ${SUPERBLOCK[sb.version]:-unknown} in
    [146] | [146]' '*) ;;
    [035] | [035]' '*)
        die usage "$1 is a cache device of bcache, not a backing device" \
            "its set is ${SUPERBLOCK[cset.uuid]:-unknown}; dirty data of other devices may be on it"
        ;;
    *) die not_here "the superblock of $1 has an unknown version" "bcache-super-show $1" ;;
    esac
    case ${SUPERBLOCK[dev.data.cache_state]:-unknown} in
    [01] | [01]' '*) ;;
    *)
        die usage "$1 is not complete without its cache: ${SUPERBLOCK[dev.data.cache_state]:-unknown state}" \
            "connect the cache device of its set ${SUPERBLOCK[cset.uuid]:-} first"
        ;;
    esac
}

# superblock_block_bytes BACKING: the block size of an existing backing device.
superblock_block_bytes() {
    local sectors
    read_superblock "$1"
    sectors=${SUPERBLOCK[dev.sectors_per_block]:-}
    [[ $sectors =~ ^[1-9][0-9]{0,5}$ ]] ||
        die not_here "the superblock of $1 cannot be read" "bcache-super-show $1"
    echo "$((sectors * 512))"
}

# other_users SET_FOLDER BCACHE_FOLDER: what else is attached to the set: bdev1, a backing device;
# volume2, a volume that is only on the cache device.
other_users() {
    local entry users=()
    for entry in "$1"/bdev[0-9]* "$1"/volume[0-9]*; do
        [[ -e $entry || -L $entry ]] || continue
        if [[ $(readlink -f "$entry") != "$2" ]]; then users+=("${entry##*/}"); fi
    done
    echo "${users[*]}"
}

# id_in_set SET_FOLDER BCACHE_FOLDER: 1 for bdev1; its keys in the index begin with that number.
id_in_set() {
    local entry
    for entry in "$1"/bdev[0-9]*; do
        if [[ $(readlink -f "$entry") == "$2" ]]; then
            echo "${entry##*bdev}"
            return
        fi
    done
    die not_here "$1 does not list $2" "ls -l $1"
}

# foreign_dirty_bytes SET_UUID [ID]: dirty data in the set of devices other than ID. A backing device
# that is not registered now is not listed anywhere, but its dirty data is in the index of the set,
# of which the kernel prints each key (drivers/md/bcache/debug.c). priority_stats has only whole
# percents: 0 % of a large cache may be gigabytes.
foreign_dirty_bytes() {
    local index=$SYS/kernel/debug/bcache/bcache-$1
    # shellcheck disable=SC2002 # not every awk fails if it cannot read
    cat "$index" 2>/dev/null | awk -v own="${2:-none}" '
        !/^[0-9]+:[0-9]+ len [0-9]+ -> \[.*\]/ || length($0) > 78 { exit unreadable = 1 }
        / dirty/ { split($1, key, ":"); if (key[1] != own) sectors += $3 }
        END { if (unreadable) exit 1; printf "%.0f\n", sectors * 512 }'
}

# check_no_foreign_dirty SET_UUID [ID]: refuses if the set may hold dirty data of an absent device.
check_no_foreign_dirty() {
    local bytes
    bytes=$(foreign_dirty_bytes "$@") || bytes=''
    [[ -n $bytes ]] || die not_here \
        "the set $1 may hold dirty data of devices that are not registered now" \
        "its index in $SYS/kernel/debug/bcache cannot be read (root, debugfs); leave out --free to keep the set"
    [[ $bytes == 0 ]] || die usage \
        "the set $1 holds $(human "$bytes") of dirty data of a device that is not registered now" \
        "register that device, or leave out --free to keep the set"
}

# register DEVICE: registers it. If udev has done it already, the kernel refuses a second time.
register() {
    local folder
    folder=$(device_folder "$1")/bcache
    stop_if_interrupted
    show "echo $(quoted "$1") > $SYS/fs/bcache/register"
    if ((dry_run)); then return; fi
    if [[ ! -e $folder ]]; then uninterrupted write_file "$1" "$SYS/fs/bcache/register" || true; fi
    uninterrupted wait_for "$PATIENCE_SECONDS" test -e "$folder" ||
        step_failed "bcache did not register $1" "dmesg"
}

# Commands for an undo, in a form that can be pasted.
stop_line() { # FOLDER FILE: stops what is registered in FOLDER by writing to FILE
    echo "if [ -e $1 ]; then echo 1 > $2; timeout 60 sh -c 'while [ -e $1 ]; do sleep 0.2; done'; fi"
}

# The kernel closes a device a moment after its folder is gone; until then wipefs finds it busy.
unmake_line() { # DEVICE: removes its superblock of bcache
    local wipe
    wipe=$(quoted wipefs --offset "$BCACHE_MAGIC_OFFSET" --types bcache "$1")
    quoted timeout "$PATIENCE_SECONDS" sh -c "until $wipe; do sleep 0.2; done"
}

# unmake DEVICE: a step: the same.
unmake() {
    local command=(wipefs --offset "$BCACHE_MAGIC_OFFSET" --types bcache "$1")
    stop_if_interrupted
    show "$(quoted "${command[@]}")"
    if ((dry_run)); then return; fi
    uninterrupted wait_for "$PATIENCE_SECONDS" "${command[@]}" || step_failed "failed: $(quoted "${command[@]}")"
}

state_line() { echo "timeout 3600 sh -c 'until grep -q \"$2\" $1/state; do sleep 0.2; done'"; }
