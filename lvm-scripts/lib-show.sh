# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Prints one stack (CACHE and PARTS) as text or as JSON.

# show_stack KIND KERNEL_NAME DM_NAME LVM_NAME
show_stack() {
    local advice
    advice=$(advice_for "$1" "${4:-$3}" | paste -sd ';')
    if [[ ${CACHE[health]} != ok || ${CACHE[access]:-rw} != rw ]]; then attention=1; fi
    if ((json)); then stack_json "$@" "$advice"; else stack_text "$@" "$advice"; fi
}

# advice_for KIND NAME: the next step, if there is one.
advice_for() {
    case ${CACHE[health]} in
    Fail | Error) echo "the kernel has disabled this cache: see dmesg, then man lvmcache (repair)" ;;
    needs_check) echo "cachepool: deactivate it, then lvconvert --repair; cachevol: lvm2 cannot repair it" ;;
    inconsistent) echo "dirty data is missing: connect the cache device before you use anything" ;;
    errors) echo "the cache device failed: see dmesg" ;;
    esac
    if [[ ${CACHE[access]:-rw} == ro ]]; then echo "the metadata is read-only: is it full?"; fi
    if [[ ${CACHE[policy]:-} == cleaner ]]; then
        echo "being cleaned by ebbgate clean or by hand; otherwise: lvchange --refresh $2"
    fi
}

stack_text() {
    local part role kernel dm lvm physical
    printf '%s  %s' "${4:-${3:-$2}}" "$1"
    if [[ -n ${CACHE[mode]:-} ]]; then printf ' %s' "${CACHE[mode]}"; fi
    if [[ -n ${CACHE[policy]:-} ]]; then printf ', policy %s' "${CACHE[policy]}"; fi
    printf ', %s\n' "${CACHE[state]:-${CACHE[health]}}"
    printf '  %-9s /dev/%s%s\n' volume "$2" "${3:+ (dm $3)}"
    for part in "${PARTS[@]}"; do
        IFS='|' read -r role kernel dm lvm physical <<<"$part"
        printf '  %-9s %s%s' "$role" "${lvm:-/dev/$kernel}" "${dm:+ (dm $dm)}"
        if [[ ${physical% } != "/dev/$kernel" ]]; then printf ' -> %s' "${physical% }"; fi
        echo
    done
    figures_text
    if [[ -n $5 ]]; then printf '  next: %s\n' "$5"; fi
    echo
}

figures_text() {
    case ${CACHE[target]} in
    cache) [[ -z ${CACHE[total]:-} ]] || dmcache_text ;;
    writecache) writecache_text ;;
    bcache) bcache_text ;;
    esac
}

dmcache_text() {
    local unit=${CACHE[block_bytes]}
    printf '  in use    %s of %s blocks of %s; metadata %s of %s blocks of %s\n' \
        "${CACHE[used]}" "${CACHE[total]}" "$(human "$unit")" \
        "${CACHE[metadata_used]}" "${CACHE[metadata_total]}" "$(human "${CACHE[metadata_block_bytes]}")"
    printf '  dirty     %s (%s blocks)\n' "$(human "$((CACHE[dirty] * unit))")" "${CACHE[dirty]}"
    printf '  reads     %s hits, %s misses; writes: %s hits, %s misses\n' "${CACHE[read_hits]}" \
        "${CACHE[read_misses]}" "${CACHE[write_hits]}" "${CACHE[write_misses]}"
    printf '  moved     %s promotions, %s demotions; %s\n' "${CACHE[promotions]}" \
        "${CACHE[demotions]}" "${CACHE[core]}"
    if [[ ${CACHE[access]} != rw ]]; then printf '  access    %s\n' "${CACHE[access]}"; fi
}

writecache_text() {
    local unit=${CACHE[block_bytes]}
    printf '  in use    %s of %s blocks of %s, %s of them being written back\n' "${CACHE[dirty]}" \
        "${CACHE[total]}" "$(human "$unit")" "${CACHE[destaging]}"
    printf '  dirty     at most %s\n' "$(human "$((CACHE[dirty] * unit))")"
    if [[ -n ${CACHE[writes]} ]]; then
        printf '  reads     %s, %s hits; writes: %s, %s around the cache; blocks\n' "${CACHE[reads]}" \
            "${CACHE[read_hits]}" "${CACHE[writes]}" "${CACHE[writes_around]}"
    fi
}

bcache_text() {
    printf '  dirty     %s\n' "$(human "${CACHE[dirty_bytes]}")"
    printf '  reads     %s hits, %s misses; bypassed: %s\n' "${CACHE[hits]:-0}" \
        "${CACHE[misses]:-0}" "$(human "${CACHE[bypassed_bytes]}")"
    if [[ -n ${CACHE[set_uuid]:-} ]]; then
        printf '  set       %s, buckets of %s, %s %% available\n' "${CACHE[set_uuid]}" \
            "$(human "${CACHE[bucket_bytes]}")" "${CACHE[available_percent]}"
    fi
}

json_first=1
stack_json() {
    local part role kernel dm lvm physical comma=''
    if ((!json_first)); then printf ', '; fi
    json_first=0
    printf '{"kind": %s, "volume": %s, "dm_name": %s, "lvm_name": %s, "advice": %s, ' \
        "$(json_value "$1")" "$(json_value "/dev/$2")" "$(json_value "$3")" "$(json_value "$4")" \
        "$(json_value "$5")"
    printf '"parts": ['
    for part in "${PARTS[@]}"; do
        IFS='|' read -r role kernel dm lvm physical <<<"$part"
        printf '%s{"role": %s, "device": %s, "dm_name": %s, "lvm_name": %s, "physical": [%s]}' \
            "$comma" "$(json_value "$role")" "$(json_value "/dev/$kernel")" "$(json_value "$dm")" \
            "$(json_value "$lvm")" "$(json_list "$physical")"
        comma=', '
    done
    printf '], "status": {%s}}' "$(json_map)"
}

json_map() {
    local key comma=''
    for key in $(printf '%s\n' "${!CACHE[@]}" | sort); do
        printf '%s"%s": %s' "$comma" "$key" "$(json_value "${CACHE[$key]}")"
        comma=', '
    done
}

json_list() {
    local word comma=''
    for word in $1; do
        printf '%s%s' "$comma" "$(json_value "$word")"
        comma=', '
    done
}

# json_value TEXT: a number, null if it is empty, else a string.
json_value() {
    local text=$1
    if [[ -z $text ]]; then
        printf null
    elif [[ $text =~ ^(0|[1-9][0-9]*)$ ]]; then
        printf '%s' "$text"
    else
        text=${text//\\/\\\\}
        text=${text//\"/\\\"}
        text=${text//[[:cntrl:]]/ }
        printf '"%s"' "$text"
    fi
}
