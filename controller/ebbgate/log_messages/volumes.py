# SPDX-License-Identifier: GPL-2.0-only
"""Messages on volumes and their knobs. Pure."""

from __future__ import annotations

from typing import Final

from ebbgate.log_messages.message import LogMessage

VOLUME_FOLLOWED: Final = LogMessage(
    "98cf59a13df9414fb7340bd78feb1e7e",
    "A volume is followed",
    "%s: %s over %s, mode %s, policy %s",
    "ebbgated has found a volume and measures it. In mode enforce it also tunes it.",
    "Nothing.",
)
VOLUME_GONE: Final = LogMessage(
    "c2fe51c9d8c748e68767370350b7be1f",
    "A volume is gone",
    "%s: gone or changed; no longer followed",
    "The volume was stopped, detached or put together anew. What can be restored of its knobs is "
    "restored. If it comes back, it is followed again.",
    "Nothing.",
)
VOLUME_POLICY: Final = LogMessage(
    "adeeb97f7f0445cc86ffbf0b56645a4e",
    "Another policy applies to a volume",
    "%s: policy %s %s",
    "A policy file was changed, or an entry of its schedule has begun or ended.",
    "Nothing. `ebbgate explain VOLUME` shows what the policy does.",
)
DECISION: Final = LogMessage(
    "4d24fdfc42974a84bc07700a2f5a5b6b",
    "A strategy has changed what it does",
    "%s: %s: %s%s",
    "Volume, strategy, and the reason with the figures that decided.",
    "Nothing. `ebbgate explain VOLUME` shows every rule and strategy.",
)
CLEANING_ENDED: Final = LogMessage(
    "d7703f0685214311930419e5db26ca3b",
    "A cleaning is over",
    "%s: cleaning is over: %s",
    "What `ebbgate clean` began on a dm-cache volume has ended, and its own settings are put back.",
    "Nothing.",
)
WARM_BEGUN: Final = LogMessage(
    "565c9fe332cb471c961614c7483a0b81",
    "A warm-up has begun",
    "%s: job %d warms %s, requested by %s",
    "`ebbgate warm` reads a file or a range so that the kernel takes it into the cache. It stands "
    "back while users need the disk.",
    "Nothing. `ebbgate jobs` shows its progress.",
)
WARM_ENDED: Final = LogMessage(
    "1d5b6da23d4d43f9b3221738c6c86a57",
    "A warm-up is over",
    "%s: job %d is %s: %s",
    "It is done, has failed or was cancelled; the text has the share of a sample that was found in "
    "the cache, or the reason.",
    "Nothing. After a failure: remove its reason and run `ebbgate warm` again.",
)
PROMOTION_BEGUN: Final = LogMessage(
    "e491eb0353014d64b98280b938483f49",
    "Hot data is moved into a cache",
    "%s: hot data is moved into the cache: %d chunks of 1 MiB, at most %d%% of the time",
    "promote_hot has found data that users miss in the cache, and ebbgated reads it so that the "
    "kernel caches it. The message comes again after it has stopped for a while.",
    "Nothing. `ebbgate status VOLUME` shows what was moved and what it has saved.",
)
PROMOTION_WAITS: Final = LogMessage(
    "6176ad05b1974e5297d0d885ebd0989b",
    "No hot data is moved for now",
    "%s: no hot data is moved for now: %s",
    "There is data to move, and the reason in the message keeps ebbgated from reading it. It goes "
    "on by itself.",
    "Nothing, unless the reason is a setting of yours, such as a low sequential_cutoff.",
)
PROMOTION_FAILED: Final = LogMessage(
    "27b46bdd2bc347aeb42cce0e26871243",
    "The process that moves hot data has failed",
    "%s: hot data cannot be moved: %s; tried again in %s",
    "The process that reads has ended, does not answer, or has sent a report that cannot be right. "
    "It is started again, after longer and longer times; the message comes once until it works.",
    "Look for a failing device in the kernel's log; see `systemctl status ebbgate-warm.socket` and "
    "the log of ebbgate-warm@.service.",
)
HEAD_RETURN_FAILED: Final = LogMessage(
    "b2b152266a5340c383eab5e0eb14ec8b",
    "The heads of a disk cannot be brought back to where users read",
    "heads of disks cannot be brought back after write-back in gaps: %s",
    "After write-back in a gap ebbgated has one page of 4 KiB read where users miss the cache. The "
    "process that reads has ended or does not answer, or the read has failed. Requests that return "
    "wait some milliseconds longer; all else works. The message comes once until it works again.",
    "Look for a failing device in the kernel's log; see `systemctl status ebbgate-warm.socket`. "
    "`head_return: 0` in a policy turns it off.",
)
PROMOTION_WORKS: Final = LogMessage(
    "dd632f4011c142428578c67867009e34",
    "Hot data can be moved again",
    "%s: hot data is moved again",
    "An earlier failure is over.",
    "Nothing.",
)
PIN_ENDED: Final = LogMessage(
    "bbf0eaba916646a6a72ae78cfae9ca9d",
    "A file is not pinned any more",
    "%s: pin %d of %s is over: %s",
    "Somebody has unpinned the file, or it was deleted or replaced. What of it is in the cache "
    "stays there until the kernel needs the room.",
    "Nothing. If another file has its place: `ebbgate pin PATH`.",
)
PIN_COLD: Final = LogMessage(
    "099ab378e4d344d680a90319cdf6617f",
    "Parts of a pinned file are not in the cache any more",
    "%s: pin %d, %s: %s; it is warmed again",
    "Much was written or read at once, the file has changed, or the cache was replaced.",
    "Nothing. If it happens repeatedly, see `ebbgate pins`: the cache may be too small.",
)
PIN_INVALID: Final = LogMessage(
    "aa0fd7890d5a4767b92be95647eaf0c0",
    "A saved pin is invalid",
    "%s",
    "A row of overrides.db is damaged or from a newer version. It is set aside; others stay in "
    "force.",
    "Pin the file again with `ebbgate pin`.",
)
PIN_LOOK_FAILED: Final = LogMessage(
    "94456a20af354cb29b86cdd8ec5a4d6f",
    "Internal error with pinned files",
    "pinned files could not be looked after",
    "A bug in ebbgated. It tries again; pinned files may fall out of the cache meanwhile.",
    "Please report it with the lines of the log around it.",
)
KNOB_JOB_FAILED: Final = LogMessage(
    "7c5440f23f1f4de5acdb5da71a38ab65",
    "Internal error while a knob was written",
    "%s: a knob job failed",
    "A bug in ebbgated. The knobs of this volume may keep their values until the next decision.",
    "Please report it with the lines of the log around it.",
)
KNOB_CHANGED_BY_OTHERS: Final = LogMessage(
    "d16ccbe5bb234481b750ae2622d751e0",
    "Somebody else has changed a knob",
    "%s: %s was changed by somebody else to %s: %s",
    "The value is not what ebbgated wrote last, so a person or a program has set it. It is left "
    "alone from now on.",
    "If ebbgate is to tune it again: `ebbgate release VOLUME`. If nobody wanted this change, look "
    "for scripts and udev rules that write the knob.",
)
KNOB_LEFT_ALONE: Final = LogMessage(
    "bc55f67a48aa43448441b5b751132c33",
    "A knob that somebody else wrote is left alone",
    "%s: %s: %s",
    "Before writing or restoring, a value was found that ebbgate did not write. It stays.",
    "If ebbgate is to tune it again: `ebbgate release VOLUME`.",
)
KNOB_NOT_WRITTEN: Final = LogMessage(
    "12c485bc48054b75976e3c8061372be1",
    "A knob cannot be written",
    "%s: %s = %s: %s",
    "The kernel refused the value, or has changed it, or the volume does not answer. ebbgated "
    "tries again; the message comes once until it succeeds.",
    "Read the reason in the message; `ebbgate doctor` checks the volume, and the kernel's log may "
    "say more.",
)
KNOB_WRITABLE_AGAIN: Final = LogMessage(
    "abbbc6b2d0304eb5ae215c5b2c85e65a",
    "A knob can be written again",
    "%s: %s can be written again",
    "An earlier failure is over.",
    "Nothing.",
)
KNOB_WRITE_HANGS: Final = LogMessage(
    "067c7213c3dc4ec7b8968627c6c2406e",
    "A write of a knob hangs at the end",
    "%s: a write of a knob hangs in the kernel",
    "The volume was dropped or ebbgated stops, and the kernel has not returned from a write. The "
    "original values of its knobs stay saved.",
    "Look for a failed or hanging device in the kernel's log. Once the volume answers, run "
    "`ebbgate restore`; after a reboot the kernel starts with its own values.",
)
KERNEL_CALL_HANGS: Final = LogMessage(
    "931ce552847c4f1187b3765263b5dfeb",
    "A call hangs in the kernel",
    "%s: %s hangs in the kernel (%s so far)",
    "Reading or writing a knob of this volume usually takes microseconds. Until it returns, the "
    "volume is not tuned; others are.",
    "Look for a failed or hanging device in the kernel's log.",
)
KERNEL_CALL_RETURNED: Final = LogMessage(
    "4d5ef7b2d78f48d7965506ad82ecd859",
    "A hanging call has returned",
    "%s: %s has returned, after %s",
    "The volume is tuned again.",
    "If it happens repeatedly, look for a slow or failing device in the kernel's log.",
)
HANG_CHECK_FAILED: Final = LogMessage(
    "0266238620ec43caa2dc24b7c364e745",
    "Internal error in the check for hanging calls",
    "the check for hanging calls failed",
    "A bug in ebbgated. Tuning continues; calls that hang may not be reported.",
    "Please report it with the lines of the log around it.",
)
TABLE_RELOADED: Final = LogMessage(
    "ad0bb63993054a4692aa3bd0a3447222",
    "The table of a dm-cache volume was reloaded",
    "%s: its table was reloaded; the knobs are set again",
    "LVM or a person has loaded the volume's table again, which sets its knobs back.",
    "Nothing.",
)
DEVICE_MAPPER_BLOCKED: Final = LogMessage(
    "9a9b750d4df54e928ccd853ad105be47",
    "Device-mapper cannot be queried",
    "device-mapper cannot be queried (%s): its volumes are not tuned",
    "ebbgated needs /dev/mapper/control for dm-cache and dm-writecache volumes. bcache is not "
    "affected.",
    "Run `ebbgate doctor`. In a container or with a changed unit, allow the device (DeviceAllow=) "
    "and CAP_SYS_ADMIN.",
)
KNOBS_RESTORED: Final = LogMessage(
    "77175965eb6b426392de7685e5c63efe",
    "Knobs of an ended daemon are restored",
    "restored %d knobs that an earlier ebbgated had left",
    "An ebbgated ended without restoring its knobs, for example because it was killed. They have "
    "their original values again.",
    "If ebbgated ends this way repeatedly, look for the reason further up in the log.",
)
KNOB_NOT_RESTORED: Final = LogMessage(
    "62594454ede342289228f7a8e86540dd",
    "A knob cannot be restored",
    "%s: %s: not restored: %s",
    "An ebbgated ended and left a knob changed, and its original value cannot be written. It "
    "stays saved.",
    "Remove the cause that the message names, then run `ebbgate restore`. After a reboot the "
    "kernel starts with its own values.",
)
LAYOUT_UNREADABLE: Final = LogMessage(
    "a19780a9002543f88b25c64ba3d86f72",
    "The places of files on a volume cannot be read",
    "%s: the places of its files cannot be read: %s",
    "The policy names files for `promote_hot`, and where they lie could not be read. What was read "
    "before stays in use, and ebbgate tries again in a minute.",
    "Remove the cause that the message names; `ebbgate layout show FILE` tells more of a file.",
)
LEFT_KNOBS_UNKNOWN: Final = LogMessage(
    "e72e7729821045bbb39c5fbbade4ca81",
    "Whether knobs were left behind is not known",
    "whether knobs were left behind is not known: %s",
    "The journal of knobs cannot be read, so nothing could be restored from it.",
    "Remove the cause that the message names; `ebbgate status` shows the knobs. After a reboot "
    "the kernel starts with its own values.",
)
JOURNAL_NOT_UPDATED: Final = LogMessage(
    "3852390a50e745f1819948fc7637e03c",
    "The journal of knobs is not up to date",
    "%s",
    "Knobs are restored, but the journal of original values could not be written.",
    "Make /var/lib/ebbgate writable; check that its disk is not full.",
)
OVERRIDE_ENDED: Final = LogMessage(
    "854498a4aa624e21a1298c5821324c54",
    "A set value, hold or drain is over",
    "%s: %s of %s is over: %s",
    "It was for a limited time, has done its work, or somebody ended it.",
    "Nothing.",
)
OVERRIDE_NOT_APPLIED: Final = LogMessage(
    "bb664611d1f54f78a33590ffd310616b",
    "Internal error with a set value, hold or drain",
    "%s: an override could not be applied",
    "A bug in ebbgated; this set value, hold or drain has ended.",
    "Please report it with the lines of the log around it.",
)
OVERRIDE_SET_ASIDE: Final = LogMessage(
    "bb89e6ffdaed445987074e848eb54b65",
    "A set value, hold or drain is set aside",
    "%s: %s of %s is set aside: it cannot be applied: %s",
    "It was saved by an earlier ebbgated and cannot be applied by this one. Others stay in force.",
    "Request it again with `ebbgate set`, `ebbgate hold` or `ebbgate drain`. Please report it "
    "with the lines of the log around it.",
)
OVERRIDE_INVALID: Final = LogMessage(
    "ce42f1f6012a4283965f1560fe7210db",
    "A saved set value, hold or drain is invalid",
    "%s",
    "A row of overrides.db is damaged or from a newer version. It is set aside; others stay in "
    "force.",
    "Request it again with `ebbgate set`, `ebbgate hold` or `ebbgate drain`.",
)
OVERRIDES_FOLLOWED: Final = LogMessage(
    "635756ecd72e4aea8238f8e99cc8890c",
    "A volume has another name, and what was chosen for it is applied there",
    "%s: this volume was %s before; what was chosen for it is in force: %s",
    "bcache numbers its devices in the order in which they are registered, so a boot may swap "
    "bcache0 and bcache1. Modes, set values, holds and pins follow the uuid of the volume.",
    "Nothing. Policies and `[volume.NAME]` in ebbgate.toml go by the name: see which volumes they "
    "name.",
)
OVERRIDES_OF_ANOTHER: Final = LogMessage(
    "f4e6cf8daef344fda263cae39ea7ea63",
    "What was chosen for another volume of the same name is not applied",
    "%s: another volume had this name before; what was chosen for that one is not applied here: %s",
    "The volume has another uuid than the one for which somebody chose a mode, set a value or held "
    "it. That is saved, and in force again once the other volume is found under any name.",
    "See the modes with `ebbgate status`, and choose one for this volume if it is not the right "
    "one: `ebbgate enforce VOLUME`, `advise` or `observe`. Repeat `ebbgate set` or `ebbgate hold` "
    "if this volume is to have it, too. `ebbgate status` lists what is kept for the other volume. "
    "If that one is gone for good, drop it: `ebbgate forget UUID`; this message then ends.",
)
OVERRIDES_FAILED: Final = LogMessage(
    "3ab9aaedb0b84b35aa8c72bf6c687937",
    "Internal error with set values, holds or drains",
    "overrides: an internal error",
    "A bug in ebbgated. What is in force stays in force.",
    "Please report it with the lines of the log around it.",
)
