# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
# Included by the scripts of both kinds of packages.

# The units and programs of `make install` would be found before those of this package.
remove_local_install() {
	echo "ebbgate: removing the ebbgate of 'make install' from /usr/local; settings and history stay"
	if [ -d /run/systemd/system ]; then
		systemctl stop ebbgate-web.service ebbgated.service || true
	fi
	if systemctl is-active --quiet ebbgated.service 2>/dev/null || ! put_back; then
		echo "ebbgate: ebbgated did not stop, or not every knob could be restored (see above), so" \
			"nothing is installed; try: ebbgate restore, or reboot, then install again;" \
			"until then the one in /usr/local starts again at the next boot" >&2
		exit 1
	fi
	# Not before: after a failure that one is still the only ebbgate.
	if command -v systemctl >/dev/null; then
		systemctl disable --quiet ebbgate-web.service ebbgated.service || true
	fi
	rm -f @LOCAL_FILES@
	rm -rf /usr/local/lib/ebbgate /usr/local/lib/systemd/system/ebbgated.service.d/group.conf \
		/usr/local/lib/systemd/system/ebbgate-restore.service.d/group.conf
	rmdir --ignore-fail-on-non-empty /usr/local/lib/systemd/system/ebbgated.service.d \
		/usr/local/lib/systemd/system/ebbgate-restore.service.d 2>/dev/null || true
	set_aside_units
	if [ -d /run/systemd/system ]; then
		systemctl daemon-reload
	fi
}

# So would units elsewhere, of `make install UNITDIR=` or `systemctl edit --full`, whose programs are gone now.
set_aside_units() {
	for name in ebbgated ebbgate-restore ebbgate-warm@ ebbgate-web; do
		for unit in /etc/systemd/system/$name.service /run/systemd/system/$name.service; do
			[ -f "$unit" ] || continue
			case $(cat "$unit") in
			*/usr/local/bin/ebbgate* | */usr/local/sbin/ebbgate* | */usr/local/lib/ebbgate*)
				mv -f "$unit" "$unit.local"
				echo "ebbgate: $unit started the ebbgate of /usr/local; it is $unit.local now, which systemd does not read"
				;;
			esac
		done
	done
}

# The daemon's unit did this already; here for a machine without systemd.
put_back() {
	[ -x /usr/local/bin/ebbgate ] || return 0
	/usr/local/bin/ebbgate restore --keep-overrides && return
	# 64: an early 0.1 does not know the option.
	[ $? -eq 64 ] && /usr/local/bin/ebbgate restore
}

is_local_install() {
	[ -e /usr/local/lib/ebbgate/ebbgate/__init__.py ]
}
