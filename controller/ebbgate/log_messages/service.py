# SPDX-License-Identifier: GPL-2.0-only
"""Messages of the services: start and end, probe, policies, requests, web. Pure."""

from __future__ import annotations

from typing import Final

from ebbgate.log_messages.message import LogMessage

DAEMON_READY: Final = LogMessage(
    "ecf9cae3138243f98025b860e30a0ea6",
    "ebbgated is ready",
    "ebbgated %s is ready",
    "The policies are loaded, and volumes are followed as they are found.",
    "Nothing.",
)
DAEMON_STOPPED: Final = LogMessage(
    "711c1fa3c67846b28afa68de9b2cad9d",
    "ebbgated has stopped",
    "ebbgated has stopped; every knob is restored",
    "It was asked to stop. The kernel's caches work as they did without ebbgate.",
    "Nothing.",
)
DAEMON_FAILED: Final = LogMessage(
    "d6854ee9da464edabacd3f9e4a6a02ca",
    "ebbgated cannot run",
    "ebbgated: %s",
    "ebbgated ended because of what the message names. Its knobs are restored by `ebbgate "
    "restore`, which systemd runs after each end.",
    "Follow the second line of the message, then `systemctl reset-failed ebbgated` and `systemctl "
    "restart ebbgated`: after several failures systemd refuses to start it for five minutes. "
    "`ebbgate doctor` says what this kernel supports.",
)
RESTORE_FAILED: Final = LogMessage(
    "3b2d35e29bdb42df9598af185215d222",
    "ebbgate restore has failed",
    "ebbgate: %s",
    "After the end of ebbgated, not every knob could be restored. Original values stay saved.",
    "Remove the cause that the message names, then run `ebbgate restore`. After a reboot the "
    "kernel starts with its own values.",
)
SETTINGS_WRONG_FOR_RESTORE: Final = LogMessage(
    "dd2bfd7e46fd4c4194857f81f5543a22",
    "The settings have an error, which does not stop a restore",
    "%s",
    "A restore needs only `state_dir` and `runtime_dir`. A folder that cannot be read from the "
    "file has its default.",
    "Correct the line that the message names. If `state_dir` or `runtime_dir` is not the default "
    "and the file has an error of syntax, then run `ebbgate restore` again.",
)
PROBE_WARNING: Final = LogMessage(
    "ac87c56c814e4afe86fb5d4529daaec2",
    "The probe reports a limit or an error",
    "probe: %s: %s (%d so far)",
    "ebbgate-probe measures less than everything: a table is full, or it cannot read something. "
    "Logged again each time the count has doubled. `ebbgate status --json` has it, too.",
    "Nothing, unless the count grows all the time: then run `ebbgate doctor`.",
)
PROBE_ENDED: Final = LogMessage(
    "561b1c320a62424c8895d7892da7636d",
    "The probe has ended",
    "the probe ended: %s; again in %g s, signals are unknown till then",
    "ebbgate-probe has ended and is started again. Meanwhile rules and strategies that need its "
    "signals do nothing.",
    "If it happens repeatedly, run `ebbgate doctor`.",
)
PROBE_GIVEN_UP: Final = LogMessage(
    "3fa5131363574e13a024437d19ff4f9c",
    "The probe cannot start",
    "%s",
    "ebbgate-probe ends with an internal error at each start. Volumes are shown, but not tuned.",
    "Run `ebbgate-probe --check`, then `systemctl reload ebbgated`. Please report it with the "
    "lines of the log around it.",
)
PROBE_HANGS: Final = LogMessage(
    "7d0f5e1b6a8c4c52b0e4f3a91d27c865",
    "The probe hangs",
    "the probe follows volumes and has sent nothing for %g s: it is ended and started again",
    "ebbgate-probe is stopped or hangs. Its signals were unknown meanwhile, and nothing was tuned.",
    "If it happens repeatedly, see whether something stops or freezes it (`ps -o stat,wchan -C "
    "ebbgate-probe`), and report it with the lines of the log around it.",
)
PROBE_LINE_TOO_LONG: Final = LogMessage(
    "6d3760002f0a4919b12ac7130207089f",
    "The probe broke its protocol",
    "the probe sent a line over %d bytes",
    "ebbgate-probe is started again.",
    "Check that probe and daemon are of the same version (`--version`). Please report it with the "
    "lines of the log around it.",
)
PROBE_RECORD_DAMAGED: Final = LogMessage(
    "376bc5f4d27a483780e443884135a15f",
    "A record of the probe is damaged",
    "a damaged record from the probe: %s",
    "The record is ignored. Only the first ones are logged.",
    "Check that probe and daemon are of the same version (`--version`). Please report it with the "
    "lines of the log around it.",
)
POLICIES_LOADED: Final = LogMessage(
    "5452a7993f8b4b38b87f40221d3962d0",
    "Policies are loaded",
    "policies: %s",
    "These policies apply from now on.",
    "Nothing.",
)
POLICY_ERROR: Final = LogMessage(
    "8f59ca2a28bf42109e973758a1e37c17",
    "A policy file has an error",
    "%s",
    "File, line and column of an error. The file does not replace a valid policy.",
    "Correct the file; `ebbgate check-policy FILE` lists all errors.",
)
POLICY_NOTE: Final = LogMessage(
    "50240ddaedca48bdbac6f180dd522dd9",
    "A key of a policy has no effect",
    "%s",
    "The key is valid, but has no effect on the volumes that the policy is for: it is for another "
    "kind of cache, or has lost its effect in this version. The rest of the file applies.",
    "Remove the key; `ebbgate check-policy FILE` lists all such keys.",
)
POLICIES_REFUSED: Final = LogMessage(
    "729aede7c4a74cc6866ccc1dd3914e4f",
    "The policies have errors",
    "errors in the policies in %s: %s",
    "The errors are in the lines before. Files apply together: the message says what is in force "
    "until all are valid.",
    "Correct them; `ebbgate check-policy FILE` lists all errors. They are read again within two "
    "seconds.",
)
POLICIES_UNREADABLE: Final = LogMessage(
    "9256d204d19f41e39c17bf3a01023447",
    "Internal error while policies were read",
    "the policies cannot be read",
    "A bug in ebbgated. The last valid policies apply.",
    "Please report it with the lines of the log around it.",
)
REQUEST_DONE: Final = LogMessage(
    "abbf34d971da4e26a1935baaedde6cbd",
    "A request is carried out or refused",
    "request %d (%s by %s): %s",
    "What somebody requested on the command line or in the browser, and its outcome.",
    "Nothing.",
)
REQUEST_FAILED: Final = LogMessage(
    "c3d2833ea76847b7ad0956afe79000c3",
    "Internal error in a request",
    "request %d (%s) failed: an internal error",
    "A bug in ebbgated. The request may be carried out in part.",
    "`ebbgate status` shows what is in force. Please report it with the lines of the log around "
    "it.",
)
REQUEST_STATUS_NOT_SENT: Final = LogMessage(
    "7573a518064a4572a05fede466e6f3c5",
    "Internal error after a request",
    "the status after request %d cannot be sent",
    "A bug in ebbgated. The request is carried out; `ebbgate status` shows it a little later.",
    "Please report it with the lines of the log around it.",
)
REQUEST_NOT_HANDLED: Final = LogMessage(
    "4d8679f96a5749ed949390ddb0e6636c",
    "Internal error while a request was read",
    "a request (%s) failed: an internal error",
    "A bug in ebbgated. The request is not carried out.",
    "Please report it with the lines of the log around it.",
)
CONNECTION_FAILED: Final = LogMessage(
    "7a084b9586874e7ab411ae2e9832fefd",
    "Internal error in a connection",
    "a connection failed: an internal error",
    "A bug in ebbgated. The program at the other end gets an error; tuning continues.",
    "Please report it with the lines of the log around it.",
)
CONNECTION_NOT_ACCEPTED: Final = LogMessage(
    "e7abf4a078fc40dfac1a419f64bb0aaf",
    "A connection could not be accepted",
    "a connection could not be accepted: %s",
    "The control socket cannot take more connections at the moment, for example because too many "
    "files are open. It is tried again.",
    "If it continues, `systemctl restart ebbgated`.",
)
CONNECTION_NOT_SERVED: Final = LogMessage(
    "a118b7136e5f40789fc2057f7e26051f",
    "Internal error with a new connection",
    "a connection could not be served: an internal error",
    "A bug in ebbgated. Tuning continues.",
    "Please report it with the lines of the log around it.",
)
SOCKET_REMOVED: Final = LogMessage(
    "5da49af46a3e49f78f7833af91591091",
    "The control socket was removed",
    "%s was removed: it is created again",
    "Somebody has deleted the socket through which requests come.",
    "Nothing.",
)
SOCKET_FOR_ROOT_ONLY: Final = LogMessage(
    "4860ace45f244bc5b4c12bdf626ec25e",
    "ebbgate-web cannot send requests",
    "the control socket is for root only: it cannot be given to the group ebbgate (%s); set "
    "Group=ebbgate in the [Service] section of `systemctl edit ebbgated`, then restart ebbgated",
    "ebbgate-web and members of the group ebbgate can read, but not change anything.",
    "As the message says. The packages' own units have this setting.",
)
CHANGES_IMPOSSIBLE: Final = LogMessage(
    "e0cdc0cf093c497781ef58b76dc73af4",
    "No request can be taken",
    "changes are not possible: %s",
    "The control socket cannot be made. Tuning continues.",
    "Remove the cause that the message names: usually /run/ebbgate is missing or not writable.",
)
WEB_LISTENING: Final = LogMessage(
    "29b54d9e0c924a449a7e6c8a118415f0",
    "ebbgate-web is ready",
    "http://%s:%d/",
    "The dashboard and the metrics are served on this address.",
    "Nothing.",
)
WEB_FAILED: Final = LogMessage(
    "16b9c82f1be7490b873bd0338e3ba534",
    "ebbgate-web cannot run",
    "ebbgate-web: %s",
    "ebbgate-web ended because of what the message names. Tuning is not affected.",
    "Follow the second line of the message, then `systemctl reset-failed ebbgate-web` and "
    "`systemctl restart ebbgate-web`: after several failures systemd refuses to start it for five "
    "minutes.",
)
WEB_REQUEST_FAILED: Final = LogMessage(
    "a6cc9c846b464d1eb8a80dcd23c31098",
    "Internal error in ebbgate-web",
    "%s %s: %s",
    "A bug in ebbgate-web. The browser gets an error; other requests are served.",
    "Please report it with the lines of the log around it.",
)
WEB_POLL_FAILED: Final = LogMessage(
    "d9de5075fc9949d896b93ec38b8a5ea1",
    "Internal error while live data was read",
    "the databases could not be polled",
    "A bug in ebbgate-web. Pages show older data until it succeeds.",
    "Please report it with the lines of the log around it.",
)
WRONG_TOKEN: Final = LogMessage(
    "171cd9b1d70747da8b2cf525c19dafae",
    "Somebody sent a wrong token",
    "wrong token from %s (%d wrong ones since this was last logged)",
    "A client has tried to read or change something with a token that is not valid.",
    "If the token was replaced, give clients the new one (`ebbgate web-token`). Else find out who "
    "uses that address.",
)
