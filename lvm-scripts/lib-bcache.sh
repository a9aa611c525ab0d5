# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# What bcache says about a volume, in the words of lib-dm.sh, and its sizes.

# bcache_bytes TEXT: 63.9M as the kernel prints it; it keeps one digit (drivers/md/bcache/util.c).
bcache_bytes() {
    awk -v t="$1" 'BEGIN {
        n = index("kMGTPEZY", substr(t, length(t)))
        if (t ~ /[0-9]$/) n = 0
        printf "%d", (t + 0) * 1024 ^ n }'
}

# knob FILE: its content; of a list of choices the chosen one. Empty if there is none.
knob() {
    local text=''
    if [[ -r $1 ]]; then read -r text <"$1" || true; fi
    if [[ $text == *\[*\]* ]]; then
        text=${text#*\[}
        text=${text%%\]*}
    fi
    echo "$text"
}

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

# dirty_bytes_left FOLDER: 0 only if the kernel calls the volume clean: what it prints is rounded.
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

readonly BUCKETS_MIN=1024
readonly BUCKET_BYTES_DEFAULT=$((512 * 1024)) BUCKET_BYTES_MAX=$((16 << 20))

# bucket_bytes DEVICE_BYTES ERASE_BLOCK_BYTES: 512 KiB, doubled until it is a multiple of the erase
# block if a power of two can be, halved until there are 1024 buckets.
bucket_bytes() {
    local bucket=$BUCKET_BYTES_DEFAULT
    if (($2 > 0)); then
        while ((bucket % $2 && bucket < BUCKET_BYTES_MAX)); do bucket=$((bucket * 2)); done
        if ((bucket % $2)); then bucket=$BUCKET_BYTES_DEFAULT; fi
    fi
    while (($1 / bucket < BUCKETS_MIN && bucket > 4096)); do bucket=$((bucket / 2)); done
    echo "$bucket"
}

# check_bucket BUCKET_BYTES DEVICE_BYTES: what the kernel takes (drivers/md/bcache/super.c).
check_bucket() {
    if (($1 < 4096 || $1 > BUCKET_BYTES_MAX || ($1 & ($1 - 1)))); then
        die usage "a bucket of $(human "$1")" "a power of two from 4k to 16m"
    fi
    if (($2 / $1 < BUCKETS_MIN)); then
        die usage "$(($2 / $1)) buckets are fewer than $BUCKETS_MIN" "a smaller --bucket, or a larger device"
    fi
}

# block_bytes BACKING CACHE: the larger sector of the two.
block_bytes() {
    local one other
    one=$(blockdev --getss "$1")
    other=$(blockdev --getss "$2")
    echo "$((one > other ? one : other))"
}

# superblock_block_bytes BACKING: of a backing device that was made already.
superblock_block_bytes() {
    local sectors
    sectors=$(bcache-super-show "$1" | awk '$1 == "dev.sectors_per_block" { print $2 }')
    [[ $sectors =~ ^[1-9][0-9]*$ ]] || die not_here "the superblock of $1 cannot be read" "bcache-super-show $1"
    echo "$((sectors * 512))"
}

# register DEVICE: a step; udev may have been faster, and then the kernel refuses the second.
register() {
    local folder
    folder=$SYS/class/block/$(kernel_name "$1")/bcache
    stop_if_interrupted
    show "echo $1 > $SYS/fs/bcache/register"
    if ((dry_run)); then return; fi
    if [[ ! -e $folder ]]; then held write_file "$1" "$SYS/fs/bcache/register" || true; fi
    held wait_for 20 test -e "$folder" || die failed "bcache did not register $1" "dmesg"
}

# Lines for an undo, which may have to be pasted.
gone_line() { echo "timeout 60 sh -c 'while [ -e $1 ]; do sleep 0.2; done'"; }

state_line() { echo "timeout 3600 sh -c 'until grep -q \"$2\" $1/state; do sleep 0.2; done'"; }
