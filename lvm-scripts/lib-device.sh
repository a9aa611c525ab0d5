# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Checks that a device may become a cache device or a backing device: it has no data and no users.
# Devices are compared by number (major:minor), never by path. If a check fails, the script refuses.

# device_number DEVICE: for example 8:16; ends if it is not a block device.
device_number() {
    local text
    text=$(stat -L -c '%t:%T:%F' -- "$1" 2>/dev/null) || text=''
    [[ $text =~ ^([0-9a-f]+):([0-9a-f]+):block\ special\ file$ ]] ||
        die no_such "$1 is not a block device that can be read" "lsblk lists block devices"
    echo "$((16#${BASH_REMATCH[1]})):$((16#${BASH_REMATCH[2]}))"
}

# device_bytes DEVICE: its size.
device_bytes() {
    device_number "$1" >/dev/null
    number_from blockdev --getsize64 "$1"
}

# device_folder DEVICE: its folder in sysfs, for example /sys/devices/.../sda/sda1.
device_folder() {
    local number folder
    number=$(device_number "$1")
    folder=$(readlink -f "$SYS/dev/block/$number") || folder=''
    [[ -d $folder ]] || die not_here "the kernel does not describe $1 ($number)" "ls -l $SYS/dev/block"
    echo "$folder"
}

# kernel_name DEVICE: for example vda1, dm-3
kernel_name() {
    local folder
    folder=$(device_folder "$1")
    echo "${folder##*/}"
}

# disk_folder FOLDER: the folder of the whole disk.
disk_folder() {
    local folder=$1
    if [[ -e $folder/partition ]]; then folder=${folder%/*}; fi
    echo "$folder"
}

# refuse_overlap DEVICE OTHER: refuses if they are the same device or one is a part of the other.
refuse_overlap() {
    local one other
    one=$(device_folder "$1")
    other=$(device_folder "$2")
    if [[ $one == "$other" ]]; then die usage "$1 and $2 are the same device"; fi
    if [[ $(disk_folder "$one") == "$other" || $(disk_folder "$other") == "$one" ]]; then
        die usage "$1 and $2 overlap: one is a partition of the other"
    fi
}

# rotational DEVICE: 1 for a hard disk, 0 for an SSD, nothing if the kernel does not tell.
rotational() {
    local folder
    folder=$(device_folder "$1")
    folder=$(disk_folder "$folder")
    knob "$folder/queue/rotational"
}

# refuse_swapped CACHE DEVICE...: refuses a hard disk in front of SSDs.
refuse_swapped() {
    local device name
    if [[ $(rotational "$1") != 1 ]]; then return; fi
    for device in "${@:2}"; do
        if [[ $(rotational "$device") != 0 ]]; then return; fi
    done
    name=$(device_folder "$1")
    name=$(disk_folder "$name")
    die usage "$1 is a hard disk and would be the cache of ${*:2}, which is faster" \
        "if it is no hard disk: echo 0 > $SYS/block/${name##*/}/queue/rotational; --force does not override this"
}

# uses_of DEVICE: one line for each use of it, of its partitions and of its whole disk.
uses_of() {
    local folder part
    folder=$(device_folder "$1")
    uses_of_one "$folder"
    if [[ -e $folder/partition ]]; then
        uses_of_one "$(disk_folder "$folder")"
        return
    fi
    for part in "$folder/${folder##*/}"*; do
        if [[ -d $part ]]; then uses_of_one "$part"; fi
    done
}

# partitions_of DEVICE: the partitions of a disk, but not those that only hold others (1 KiB).
partitions_of() {
    local folder part
    folder=$(device_folder "$1")
    for part in "$folder/${folder##*/}"*; do
        if [[ -e $part/partition && $(knob "$part/size") != 2 ]]; then echo "/dev/${part##*/}"; fi
    done
}

uses_of_one() {
    local name=/dev/${1##*/} number mounts swap holder member
    number=$(text_of "$1/dev")
    mounts=$(mounts_of "$number")
    if [[ -n $mounts ]]; then echo "$name is mounted at $mounts: unmount it first"; fi
    swap=$(is_swap "$number")
    if [[ -n $swap ]]; then echo "$name is swap: swapoff it first"; fi
    for holder in "$1"/holders/*; do
        if [[ -e $holder ]]; then echo "$name is used by ${holder##*/}"; fi
    done
    # A btrfs of several devices appears in the mount table with only one of them.
    for member in "$SYS"/fs/btrfs/*/devices/*; do
        [[ -e $member/dev ]] || continue
        if [[ $(<"$member/dev") == "$number" ]]; then echo "$name belongs to a mounted btrfs"; fi
    done
    if [[ -e $1/bcache ]]; then echo "$name is registered with bcache"; fi
}

# text_of FILE: the content of a kernel file; ends if it cannot be read.
text_of() {
    cat "$1" 2>/dev/null || die not_here "a check failed: $1 cannot be read" "ls -l $1"
}

# mounts_of NUMBER: the mount points, separated by spaces.
mounts_of() {
    local table
    table=$(text_of "$PROC/self/mountinfo")
    awk -v number="$1" '$3 == number { print $5 }' <<<"$table" | sort -u | paste -sd ' '
}

# is_swap NUMBER: prints the path if the device is swap.
is_swap() {
    local table path kind rest number
    table=$(text_of "$PROC/swaps")
    while read -r path kind rest; do
        [[ $kind == partition ]] || continue
        path=${path//\\040/ }
        number=$(device_number "$path")
        if [[ $number == "$1" ]]; then echo "$path"; fi
    done <<<"$table"
}

# refuse_in_use DEVICE: also with --force, since the kernel would refuse, too.
refuse_in_use() {
    local uses read_only
    uses=$(uses_of "$1")
    if [[ -n $uses ]]; then
        die usage "$1 is in use: ${uses//$'\n'/; }" "stop using it first; --force does not override this"
    fi
    read_only=$(number_from blockdev --getro "$1")
    [[ $read_only == 0 ]] || die usage "$1 is read-only"
}

# The signatures that the check found, by device. Only these are removed.
declare -A seen_signatures=()

# signatures_of DEVICE: a line `OFFSET,TYPE` for each signature; nothing for a blank device.
signatures_of() {
    local text line
    text=$(output_of wipefs --no-act --parsable --output OFFSET,TYPE "$1")
    while IFS= read -r line; do
        if [[ -z $line || $line == '#'* ]]; then continue; fi
        [[ $line =~ ^0x[0-9a-f]+,[A-Za-z0-9_.+-]+$ ]] ||
            die not_here "a check failed: wipefs --no-act $1 prints '$line'" "is util-linux too old?"
        echo "$line"
    done <<<"$text"
}

# types_of SIGNATURES: for example ext4 gpt
types_of() { awk -F , '{ print $2 }' <<<"$1" | sort -u | paste -sd ' '; }

# check_signatures DEVICE [NEXT STEP]: refuses a device with data, unless --force is given.
check_signatures() {
    local found
    found=$(signatures_of "$1")
    seen_signatures[$1]=$found
    if [[ -n $found ]] && ((!force)); then
        die usage "$1 carries data: $(types_of "$found")" \
            "${2:-see wipefs --no-act $1; --force destroys the data (it saves the signatures to ~/wipefs-*.bak)}"
    fi
}

# wipe DEVICE: steps that remove the signatures that the check found, and no others. Each is saved in
# ~, from where a roll back restores it. Ends if the device has changed since the check.
wipe() {
    local signature seen=${seen_signatures[$1]} left folder
    left=$(signatures_of "$1")
    if [[ $left != "$seen" ]]; then
        die failed "$1 has changed since the check: it now carries ${left:-nothing}" \
            "find out what uses it; see wipefs --no-act $1"
    fi
    if [[ -z $seen ]]; then return; fi
    folder=$(device_folder "$1")
    if compgen -G "$folder/*/partition" >/dev/null; then
        # Without the partition table the kernel drops the partitions.
        undo "the kernel does not see the partitions of $1" "$(quoted blockdev --rereadpt "$1")"
    fi
    for signature in $seen; do wipe_signature "$1" "${signature%,*}" "${signature#*,}"; done
    if ((dry_run)); then return; fi
    left=$(signatures_of "$1")
    [[ -z $left ]] || die failed "$1 still carries $(types_of "$left")" "wipefs --no-act $1"
}

# overwrites DEVICE: notes that the next step overwrites it and its data cannot be restored.
overwrites() {
    local seen=${seen_signatures[$1]}
    stop_if_interrupted
    if [[ -n $seen ]]; then
        cannot_restore "what $1 carried ($(types_of "$seen")) may be damaged: it has been written over"
    fi
}

# wipe_signature DEVICE OFFSET TYPE
wipe_signature() {
    local backup
    printf -v backup '%s/wipefs-%s-0x%08x.bak' "${HOME:-}" "${1##*/}" "$(($2))"
    # wipefs does not cut off a file that is there already, and dd would restore the rest of it, too.
    if [[ -e $backup ]]; then dry mv --backup=numbered "$backup" "$backup.old"; fi
    step "has_signature $(quoted "$@")" "$1 has lost its signature $3 at $2" \
        "$(quoted dd "if=$backup" "of=$1" bs=1 "seek=$(($2))" conv=notrunc,fsync status=none)" \
        dry wipefs --backup --offset "$2" --types "$3" "$1"
}

# has_signature DEVICE OFFSET TYPE
has_signature() {
    local found
    found=$(signatures_of "$1") || return
    [[ $'\n'$found$'\n' == *$'\n'"$2,$3"$'\n'* ]]
}

# lacks_type DEVICE TYPE: whether wipefs finds no signature of that type.
lacks_type() {
    local found
    found=$(signatures_of "$1") || return
    [[ " $(types_of "$found") " != *" $2 "* ]]
}

# physical_of NAME: the devices at the bottom of a stack; NAME is the kernel name at its top.
physical_of() {
    local slave found=0
    for slave in "$SYS/class/block/$1/slaves"/*; do
        [[ -e $slave ]] || continue
        found=1
        physical_of "${slave##*/}"
    done
    ((found)) || echo "/dev/$1"
}

# erase_block_bytes DEVICE: as reported by the device; 0 if it reports nothing useful.
erase_block_bytes() {
    local folder file bytes=0
    folder=$(device_folder "$1")
    file=$(disk_folder "$folder")/queue/discard_granularity
    if [[ -r $file ]]; then bytes=$(<"$file"); fi
    [[ $bytes =~ ^[0-9]{1,12}$ ]] || bytes=0
    echo "$bytes"
}
