# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Which device may become a cache device or a backing device: not one that carries or serves data.

# device_bytes DEVICE: its size; ends if there is no such block device.
device_bytes() {
    blockdev --getsize64 "$1" 2>/dev/null ||
        die no_such "$1 is not a block device that can be read" "lsblk lists what is there"
}

# kernel_name DEVICE: vda1, dm-3
kernel_name() {
    local real
    real=$(readlink -f "$1")
    echo "${real##*/}"
}

queue_of() {
    local folder=$SYS/class/block/$1
    if [[ -e $folder/partition ]]; then folder=$(readlink -f "$folder")/..; fi
    echo "$folder/queue"
}

# uses_of DEVICE: one line for each way in which it or one of its partitions is in use.
uses_of() {
    local name folder
    name=$(kernel_name "$1")
    for folder in "$SYS/class/block/$name" "$SYS/class/block/$name/$name"*; do
        if [[ -d $folder ]]; then uses_of_one "${folder##*/}" "$folder"; fi
    done
}

uses_of_one() {
    local holder mounts
    mounts=$(lsblk -nro MOUNTPOINTS "/dev/$1" 2>/dev/null | grep -v '^$' | sort -u | tr '\n' ' ') || true
    if [[ $mounts == *'[SWAP]'* ]]; then
        echo "/dev/$1 is swap: swapoff it first"
    elif [[ -n $mounts ]]; then
        echo "/dev/$1 is mounted at ${mounts% }: unmount it first"
    fi
    for holder in "$2"/holders/*; do
        if [[ -e $holder ]]; then echo "/dev/$1 is held by ${holder##*/}"; fi
    done
    if [[ -e $2/bcache ]]; then echo "/dev/$1 is registered with bcache"; fi
}

# refuse_in_use DEVICE: not even --force helps here, since the kernel itself would refuse.
refuse_in_use() {
    local uses
    uses=$(uses_of "$1")
    if [[ -n $uses ]]; then
        die usage "$1 is in use: ${uses//$'\n'/; }" "end that first; --force does not override it"
    fi
    if [[ $(blockdev --getro "$1" 2>/dev/null) == 1 ]]; then die usage "$1 is read-only"; fi
}

# signatures_of DEVICE: the types that wipefs finds, on it or on its partitions.
signatures_of() {
    wipefs --no-act --parsable --output TYPE "$1" 2>/dev/null | grep -v '^#' | sort -u | tr '\n' ' ' || true
}

# refuse_signature DEVICE: unless --force, then `wipe` will be needed.
refuse_signature() {
    local found
    found=$(signatures_of "$1")
    if [[ -n $found ]] && ((!force)); then
        die usage "$1 carries data: ${found% }" \
            "see wipefs --no-act $1; --force destroys it (the signatures are saved in ~/wipefs-*.bak)"
    fi
}

# wipe DEVICE: a step, if it has a signature: remove it and keep a copy in ~.
wipe() {
    if [[ -n $(signatures_of "$1") ]]; then dry wipefs --all --backup "$1"; fi
}

# physical_of NAME: the devices at the bottom of a stack, by the kernel's name at its top.
physical_of() {
    local slave found=0
    for slave in "$SYS/class/block/$1/slaves"/*; do
        [[ -e $slave ]] || continue
        found=1
        physical_of "${slave##*/}"
    done
    ((found)) || echo "/dev/$1"
}

# erase_block_bytes DEVICE: what the device says about it; 0 if it says nothing of use.
erase_block_bytes() {
    local file bytes=0
    file=$(queue_of "$(kernel_name "$1")")/discard_granularity
    if [[ -r $file ]]; then bytes=$(<"$file"); fi
    echo "$bytes"
}
