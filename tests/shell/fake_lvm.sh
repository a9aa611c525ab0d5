# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh disable=SC2016,SC2154 # programs of awk; variables of fake_tool
# LVM and dm-cache of the fake machine; sourced by fake_tool.

pv_number() { number_of "$1" | tr : '|'; }
pv_set() { # DEVICE, the line behind the number; none: no physical volume
    sed -i "/^$(pv_number "$1")|/d" "$state/pvs"
    if [ $# -gt 1 ]; then echo "$(pv_number "$1")|$2" >>"$state/pvs"; fi
}
pv_is() { grep -q "^$(pv_number "$1")|$2" "$state/pvs"; }
lv_line() { grep "^$1|" "$state/lvs"; }
pool_of() { lv_line "$1" | cut -d '|' -f 4; }
pv_of_lv() { lv_line "$1" | sed 's/.*|//; s/(.*//'; }
set_data() { rewrite "$state/lvs" "\$1 == \"data\" { $1 } { print }"; }
rename_lv() { rewrite "$state/lvs" "\$1 == \"$1\" { \$1 = \"$2\" } { print }"; }
count() { # DEVICE EXTENTS
    rewrite "$state/pvs" "\$1 \"|\" \$2 == \"$(pv_number "$1")\" { \$6 = $2 } { print }"
}

cache_status() { # MODE DIRTY_BLOCKS
    echo "0 1048576 cache 8 43/2048 128 500/3968 7 3 20 9 1 512 $2 2 metadata2 $1 2" \
        "migration_threshold 2048 smq 0 rw -" >"$state/dm_status"
}
no_cache() {
    echo '0 1048576 linear 8:0 2048' >"$state/dm_table"
    echo '0 1048576 linear' >"$state/dm_status"
}

run_pvcreate() {
    device=$(last_of "$@")
    if [ -s "$(signatures "$device")" ]; then refuse "aborted wiping of a signature"; fi
    add_signature "$device" 0x218,LVM2_member
    pv_set "$device" '|||'
}
run_pvremove() {
    device=$(last_of "$@")
    pv_is "$device" '|' || refuse "$device is in use, or no physical volume"
    pv_set "$device"
    remove_signature "$device" 0x218,LVM2_member
}
run_vgextend() {
    pv_is "$2" '|' || refuse "$2 is no physical volume without a group"
    pv_set "$2" "$1|4194304|25599|0"
}
run_vgreduce() {
    pv_is "$2" "$1|4194304|25599|0" || refuse "$2 is in use, or not of $1"
    pv_set "$2" '|||'
}
run_lvcreate() {
    name=$(option -n "$@") device=$(last_of "$@")
    ! lv_line "$name" >/dev/null || refuse "$name exists"
    case " $* " in
    *' --type cache-pool '*) layout=cache,pool ;;
    *) layout=linear ;;
    esac
    echo "$name|$layout||||0|||||$device(0)" | sed 's/||||0/|||4194304|0/' >>"$state/lvs"
    count "$device" "$(option -l "$@")"
}
run_lvremove() {
    name=$(last_of "$@")
    name=${name#vg/}
    lv_line "$name" >/dev/null || refuse "no $name"
    device=$(pv_of_lv "$name") left=0
    sed -i "/^$name|/d; /^${name}_c\(data\|meta\)|/d" "$state/lvs"
    if grep -q "|$device(" "$state/lvs"; then left=50; fi
    count "$device" "$left"
}
run_lvconvert() {
    case " $* " in
    *' --splitcache '*)
        pool=$(pool_of data)
        if [ -z "$pool" ]; then refuse 'no cache'; fi
        set_data '$2 = "linear"; $4 = $7 = $8 = $9 = $10 = ""'
        rename_lv "$pool" "${pool%_c*}"
        no_cache
        ;;
    *' --type cache '*)
        name=$(option --cachevol "$@")
        suffix=cvol
        if [ -z "$name" ]; then name=$(option --cachepool "$@") suffix=cpool; fi
        lv_line "$name" >/dev/null || refuse "no $name"
        set_data '$2 = "cache"; $4 = "'"${name}_$suffix"'"; $7 = "'"$(option --cachemode "$@")"'"
            $8 = "'"$(option --cachepolicy "$@")"'"; $9 = "'"$(option --chunksize "$@" | tr -d b)"'"
            $10 = "'"$(option --cachesettings "$@" | tr ' ' ,)"'"'
        rename_lv "$name" "${name}_$suffix"
        echo "$CACHE_TABLE" >"$state/dm_table"
        cache_status "$(option --cachemode "$@")" 0
        ;;
    *' --type writecache '*)
        name=$(option --cachevol "$@")
        lv_line "$name" >/dev/null || refuse "no $name"
        settings=$(option --cachesettings "$@" | tr ' ' '\n' | grep -v block_size | paste -sd ,)
        set_data '$2 = "writecache"; $4 = "'"${name}_cvol"'"; $10 = "'"$settings"'"'
        rename_lv "$name" "${name}_cvol"
        echo "$WRITECACHE_TABLE" >"$state/dm_table"
        echo '0 1048576 writecache 0 65280 65280 0' >"$state/dm_status"
        ;;
    *) refuse "$*" ;;
    esac
}
run_lvchange() {
    name=$(last_of "$@")
    name=${name#vg/}
    case " $* " in
    *' --cachemode '*)
        set_data '$7 = "'"$(option --cachemode "$@")"'"'
        cache_status "$(option --cachemode "$@")" 0
        ;;
    *' cleaner=1 '*)
        set_data 'gsub(/cleaner=0/, "cleaner=1", $10)'
        echo '0 1048576 writecache 0 65280 65280 0' >"$state/dm_status"
        ;;
    *' cleaner=0 '*) set_data 'gsub(/cleaner=1/, "cleaner=0", $10)' ;;
    *' --refresh '*) ;;
    *' -ay '*) rewrite "$state/lvs" '$1 == "'"$name"'" { $3 = "active" } { print }' ;;
    *' -an '*) rewrite "$state/lvs" '$1 == "'"$name"'" { $3 = "" } { print }' ;;
    *) refuse "$*" ;;
    esac
}
