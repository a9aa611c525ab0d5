# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Status of dm-cache and dm-writecache, and how much is still to be written back.
#
# Always uses --noflush: without it each call commits the metadata of the cache
# (drivers/md/dm-cache-target.c, cache_status).

# dm_name VG LV: for example vg-data; hyphens in either name are doubled.
dm_name() { echo "${1//-/--}-${2//-/--}"; }

# dm_status DM_NAME: fills CACHE from the status line of a dm-cache or dm-writecache volume.
dm_status() {
    local line words
    declare -gA CACHE=()
    line=$(dmsetup status --noflush "$1" 2>/dev/null) || return 1
    read -ra words <<<"$line"
    parse_status "${words[@]}"
}

# parse_status START LENGTH TARGET ...: parses the words after the name in a status line.
parse_status() {
    declare -gA CACHE=([target]=${3:-none})
    case ${3:-} in
    cache) parse_dmcache "${@:4}" ;;
    writecache) parse_writecache "${@:4}" ;;
    *) return 1 ;;
    esac
}

# Uses the counts in the line, not fixed positions: LVM may write the policy `mq` with ten arguments.
parse_dmcache() {
    if [[ $1 == Fail || $1 == Error ]]; then
        CACHE[health]=$1
        return
    fi
    local words=("$@") at features
    CACHE[metadata_block_bytes]=$((words[0] * 512))
    CACHE[metadata_used]=${words[1]%/*} CACHE[metadata_total]=${words[1]#*/}
    CACHE[block_bytes]=$((words[2] * 512))
    CACHE[used]=${words[3]%/*} CACHE[total]=${words[3]#*/}
    CACHE[read_hits]=${words[4]} CACHE[read_misses]=${words[5]}
    CACHE[write_hits]=${words[6]} CACHE[write_misses]=${words[7]}
    CACHE[demotions]=${words[8]} CACHE[promotions]=${words[9]} CACHE[dirty]=${words[10]}
    features=${words[11]}
    CACHE[features]=${words[*]:12:features}
    CACHE[mode]=$(mode_among "${words[@]:12:features}")
    at=$((12 + features))
    CACHE[core]=${words[*]:at+1:words[at]}
    at=$((at + 1 + words[at]))
    CACHE[policy]=${words[at]}
    at=$((at + 2 + words[at + 1]))
    CACHE[access]=${words[at]:-rw}
    CACHE[health]=ok
    if [[ ${words[at + 1]:--} == needs_check ]]; then CACHE[health]=needs_check; fi
}

mode_among() {
    local word
    for word in "$@"; do
        case $word in writeback | writethrough | passthrough) echo "$word" ;; esac
    done
}

# Blocks that are not free may be newer than the backing device, so they count as dirty.
parse_writecache() {
    CACHE[errors]=$1 CACHE[total]=$2 CACHE[free]=$3 CACHE[destaging]=$4
    CACHE[dirty]=$(($2 - $3))
    CACHE[reads]=${5:-} CACHE[read_hits]=${6:-} CACHE[writes]=${7:-}
    CACHE[write_hits_uncommitted]=${8:-} CACHE[write_hits_committed]=${9:-}
    CACHE[writes_around]=${10:-} CACHE[writes_allocate]=${11:-}
    CACHE[health]=ok
    if (($1)); then CACHE[health]=errors; fi
}

# dirty_blocks DM_NAME: 0 when the volume is not a cache any more; fails if that is not known.
dirty_blocks() {
    if dm_status "$1"; then
        echo "${CACHE[dirty]:?}"
    elif [[ ${CACHE[target]:-none} != none ]]; then
        echo 0
    else
        return 1
    fi
}
