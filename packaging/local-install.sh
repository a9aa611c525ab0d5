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
	if [ -d /run/systemd/system ]; then
		systemctl daemon-reload
	fi
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
