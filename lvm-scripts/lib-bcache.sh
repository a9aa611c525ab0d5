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
