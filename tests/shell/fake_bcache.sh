# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh disable=SC2016,SC2154 # programs of awk; variables of fake_tool
# bcache, signatures and /sys of the fake machine; sourced by fake_tool.

run_make_bcache() {
    device=$(last_of "$@")
    if [ -s "$(signatures "$device")" ]; then refuse "$device is not blank"; fi
    add_signature "$device" 0x1018,bcache
    uuid=$(option --cset-uuid "$@")
    if [ -n "$uuid" ]; then
        printf 'sb.version\t\t3 [cache device]\ncset.uuid\t\t%s\n' "$uuid"
    else
        printf 'sb.version\t\t1 [backing device]\ndev.sectors_per_block\t8\n'
        printf 'dev.data.cache_mode\t0 [writethrough]\ndev.data.cache_state\t0 [detached]\n'
    fi >"$state/superblock.$(name_of "$device")"
}
run_wipefs() {
    device=$(last_of "$@")
    signature=$(option --offset "$@"),$(option --types "$@")
    if ! has_signature "$device" "$signature"; then return; fi
    case " $* " in
    *' --backup '*)
        # Like the real one, it does not cut off a file that is there already.
        echo "$signature" 1<>"$HOME/wipefs-${device##*/}-$(printf '0x%08x' "$(($(option --offset "$@")))").bak"
        ;;
    esac
    remove_signature "$device" "$signature"
}
run_dd() {
    for word in "$@"; do
        case $word in
        if=*) from=${word#if=} ;;
        of=*) device=${word#of=} ;;
        esac
    done
    has_signature "$device" "$(cat "$from")" || add_signature "$device" "$(cat "$from")"
}
run_modprobe() {
    mkdir -p "$sys/fs/bcache"
    : >"$sys/fs/bcache/register"
}

set_state() { # BACKING_NAME STATE NUMBER
    echo "$2" >"$sys/block/$1/bcache/state"
    sed -i "s/^dev.data.cache_state.*/dev.data.cache_state\t$3 [$2]/" "$state/superblock.$1"
}
detach() { # BACKING_NAME
    rm -f "$sys/block/$1/bcache/cache" "$sys"/fs/bcache/*-*/bdev0
    set_state "$1" 'no cache' 0
    sed -i 's/^\(dev.data.cache_state\).*/\1\t0 [detached]/' "$state/superblock.$1"
}
register() { # DEVICE
    name=$(name_of "$1")
    folder=$sys/block/$name/bcache
    has_signature "$1" 0x1018,bcache || return 1
    mkdir -p "$folder"
    uuid=$(awk '$1 == "cset.uuid" { print $2 }' "$state/superblock.$name")
    if grep -q 'cache device' "$state/superblock.$name"; then
        mkdir -p "$sys/fs/bcache/$uuid" "$sys/kernel/debug/bcache"
        : >"$sys/fs/bcache/$uuid/unregister"
        echo 0.5k >"$sys/fs/bcache/$uuid/block_size"
        : >"$sys/kernel/debug/bcache/bcache-$uuid"
        ln -s "$sys/fs/bcache/$uuid" "$folder/set"
        ln -s "$folder" "$sys/fs/bcache/$uuid/cache0"
        return
    fi
    ln -s "$sys/block/bcache0" "$folder/dev"
    mkdir -p "$sys/block/bcache0"
    ln -sfn "$folder" "$sys/block/bcache0/bcache"
    echo '[writethrough] writeback writearound none' >"$folder/cache_mode"
    keep "$folder/cache_mode"
    echo 'no cache' >"$folder/state"
    for file in attach detach stop; do : >"$folder/$file"; done
}

# run_kernel FILE VALUE: what the kernel makes of a write. The shell has written the value already.
run_kernel() {
    file=$1 value=$2
    restore "$file"
    folder=$(dirname "$file")
    name=$(basename "$(dirname "$folder")")
    case ${file##*/} in
    register) register "$value" ;;
    attach)
        [ -d "$sys/fs/bcache/$value" ] || return 1
        ln -s "$sys/fs/bcache/$value" "$folder/cache"
        ln -s "$folder" "$sys/fs/bcache/$value/bdev0"
        set_state "$name" clean 1
        ;;
    detach) detach "$name" ;;
    stop)
        rm -r "$folder" "$sys/block/bcache0"
        rm -f "$sys"/fs/bcache/*-*/bdev0
        ;;
    unregister)
        cache=$(readlink "$folder/cache0")
        rm -rf "$cache" "$folder" "$sys/kernel/debug/bcache/bcache-${folder##*/}"
        ;;
    cache_mode)
        echo ' writethrough writeback writearound none' | sed "s/ $value/ [$value]/; s/^ //" >"$file"
        ;;
    writeback_running)
        if [ "$(cat "$folder/state")" = dirty ]; then set_state "$name" clean 1; fi
        echo 0 >"$folder/dirty_data"
        if [ -d "$sys/kernel/debug/bcache" ]; then
            sed -i '/^0:/s/ dirty//' "$sys"/kernel/debug/bcache/*
        fi
        echo "$value" >"$file"
        ;;
    *) echo "$value" >"$file" ;;
    esac
    if [ -e "$file" ]; then keep "$file"; fi
}

# What a file of /sys has held before the shell wrote to it.
keep() { cp "$1" "$state/kept$(echo "$1" | tr / -)"; }
restore() {
    if ! cat "$state/kept$(echo "$1" | tr / -)" >"$1" 2>/dev/null; then : >"$1"; fi
}
