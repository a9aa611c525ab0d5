# SPDX-License-Identifier: GPL-2.0-only
"""Messages on the databases: history, journal of knobs, saved requests. Pure."""

from __future__ import annotations

from typing import Final

from ebbgate.log_messages.message import LogMessage

HISTORY_FAILED: Final = LogMessage(
    "bc56c7224df34ae9ab408d19ffa938d1",
    "The history cannot be written",
    "the history cannot be written (%s); tuning goes on without it",
    "Usually the disk of /var/lib/ebbgate is full or read-only. Volumes are tuned as before; "
    "samples and decisions of this time may be missing later.",
    "Free space, or make the file system writable. The history goes on by itself.",
)
HISTORY_RECOVERED: Final = LogMessage(
    "9f8c121d32b84b5ea41ad76a94999197",
    "The history is written again",
    "the history is written again after %s; %d records of that time are lost",
    "An outage of the history is over.",
    "Nothing.",
)
HISTORY_NOT_FLUSHED: Final = LogMessage(
    "ff9b460ff2504db2903d33c81bac09a9",
    "The end of the history is lost",
    "%s; %d records are lost",
    "ebbgated stopped and the disk of the history did not answer in time.",
    "Check that disk; the kernel's log may say more.",
)
HISTORY_DAMAGED: Final = LogMessage(
    "f43a622c883d4941a77d050ce4d0b651",
    "The history was damaged",
    "the history is damaged (%s): moved to %s; starting a new one",
    "history.db cannot be read any more. The damaged file is kept; older data is not shown.",
    "Check the disk. The file that the message names can be deleted.",
)
HISTORY_NOT_RENEWED: Final = LogMessage(
    "b38961fbcaa941bbad7ea4387dfe79c8",
    "A new history cannot be started",
    "cannot start a new history: %s",
    "history.db is damaged, and it cannot be replaced. It is tried again; tuning goes on without "
    "a history.",
    "Remove the cause that the message names: free space, or make /var/lib/ebbgate writable.",
)
HISTORY_REMOVED: Final = LogMessage(
    "72a586b005774963aa75e421ab31cae1",
    "The history was moved or deleted",
    "%s was moved or deleted; starting a new history",
    "Somebody has removed history.db while ebbgated runs.",
    "Nothing.",
)
HISTORY_PARTLY_CHECKED: Final = LogMessage(
    "0e338e132e9a4def8602d31f6b07e65b",
    "The history was checked in part",
    "the history is large: checked only part of it in %g s",
    "At the start the file is checked for damage for a limited time. Damage beyond that shows "
    "when it is used.",
    "Nothing.",
)
HISTORY_RECORD_LOST: Final = LogMessage(
    "21399f8f9b874810942e3f6b8c417b78",
    "A record of the history is lost",
    "a record for the history was lost",
    "A bug in ebbgated, or a value that the database refuses. Other records are written.",
    "Please report it with the lines of the log around it.",
)
HISTORY_MAINTENANCE_FAILED: Final = LogMessage(
    "ff111672d0eb483fbf62a7e2ea39ad4b",
    "Internal error in the maintenance of the history",
    "maintenance of the history failed",
    "A bug in ebbgated. Old data may stay longer than history_age.",
    "Please report it with the lines of the log around it.",
)
HISTORY_ROWS_SKIPPED: Final = LogMessage(
    "957e2610c5f143e1910e5f6e4214df2e",
    "Invalid rows in the history",
    "%s: skipped invalid rows in the history",
    "Some samples of a volume cannot be read, and are missing in the graphs by minute and hour.",
    "If it happens repeatedly, check the disk.",
)
CLOCK_SET: Final = LogMessage(
    "d25a6d8ea8924ea69ed00d9222da5dae",
    "The clock was set",
    "the clock was set or the machine slept: nothing is deleted by age for an hour",
    "A wrong clock must not delete the history.",
    "Nothing, if the clock is right.",
)
HISTORY_READER_STAYS: Final = LogMessage(
    "df4491a0295240aeaf053d82341fe023",
    "A program keeps reading the history",
    "%s keeps reading the history, so its log cannot be checkpointed and has %s; recording stops "
    "before file and log exceed %s (history_size)",
    "SQLite cannot write its log back into the file while a reader holds an old state of it.",
    "End the program that the message names.",
)
HISTORY_READER_ENDED: Final = LogMessage(
    "f5626f256187479cb0bfe7eb28a53a27",
    "The log of the history is checkpointed again",
    "the log of the history is checkpointed again after %s",
    "The program that kept reading has ended.",
    "Nothing.",
)
ACCESS_NOT_GIVEN: Final = LogMessage(
    "9d1d554942be4593b101f4829c51c1d0",
    "ebbgate-web cannot read the history",
    "%s: cannot give ebbgate-web access: %s",
    "The folder cannot be given to the group ebbgate, so the dashboard stays empty.",
    "As root: chgrp ebbgate FOLDER; chmod 2750 FOLDER.",
)
JOURNAL_FAILED: Final = LogMessage(
    "b197d17cf72e41c1ae2afe8c5b30a224",
    "The journal of knobs cannot be written",
    "the journal of knobs cannot be written: %s",
    "Original values cannot be saved, so no knob is changed for the first time. Knobs that are "
    "saved already are still tuned and restored.",
    "Free space, or make /var/lib/ebbgate writable. It goes on by itself.",
)
JOURNAL_RECOVERED: Final = LogMessage(
    "6d496df7501c49a69363fa6a9e278705",
    "The journal of knobs can be written again",
    "the journal can be written again: %s",
    "An outage of the journal is over.",
    "Nothing.",
)
JOURNAL_HANGS: Final = LogMessage(
    "529c2decf5e147419706bb7bba4713e7",
    "The disk of the journal of knobs hangs",
    "the disk of the journal does not answer: %s",
    "ebbgated stops and could not write to the journal in time. Restored knobs may still be "
    "listed in it, and are checked at the next start.",
    "Check that disk; the kernel's log may say more.",
)
JOURNAL_DAMAGED: Final = LogMessage(
    "5a22b5e777454705ae31a139a596b95e",
    "The journal of knobs was damaged",
    "the journal is damaged (%s): moved to %s; the new one has %d originals%s",
    "journal.db has been replaced; what could be read of it was kept.",
    "Check the disk. If originals may be lost, compare `ebbgate status` with your own settings; "
    "after a reboot the kernel starts with its own values.",
)
JOURNAL_REMOVED: Final = LogMessage(
    "5d5c66cfba70434da47daaf537f1f494",
    "The journal of knobs was moved or deleted",
    "%s was moved or deleted; starting a new journal",
    "Somebody has removed journal.db while ebbgated runs. The new one gets all originals that "
    "ebbgated knows.",
    "Nothing.",
)
JOURNAL_NOT_RENEWED: Final = LogMessage(
    "55c3a75847b64d00a708dcb4a9ca53f2",
    "A new journal of knobs cannot be started",
    "cannot start a new journal: %s",
    "journal.db is damaged, and it cannot be replaced. It is tried again.",
    "Remove the cause that the message names: free space, or make /var/lib/ebbgate writable.",
)
OVERRIDES_DAMAGED: Final = LogMessage(
    "be1367169c174a0f9bf698ab21f92fc0",
    "The file of set values, holds and drains was damaged",
    "%s; it is renamed to %s, and a new one is created",
    "Modes, set values, holds and drains from before are no longer in force.",
    "Check the disk, then request again what you need.",
)
OVERRIDES_UNUSABLE: Final = LogMessage(
    "da82446a293248949dbe3608117a2cc2",
    "Requests cannot be saved",
    "%s cannot be used; tuning continues: %s",
    "overrides.db cannot be read or written. What is in force stays in force; new requests are "
    "refused.",
    "Free space, or make /var/lib/ebbgate writable. It goes on by itself. If the file was moved or "
    "deleted, move it back, or restart ebbgated, which then uses what is there.",
)
OVERRIDES_USABLE_AGAIN: Final = LogMessage(
    "2e2b84ffb96949599556067a41deb45e",
    "Requests can be saved again",
    "%s can be used again",
    "An outage of overrides.db is over.",
    "Nothing.",
)
OVERRIDES_ROWS_NOT_MARKED: Final = LogMessage(
    "d15adaa3b70e4dbb995d26cf26f5ba42",
    "Invalid rows could not be marked",
    "%s: invalid rows could not be marked: %s",
    "Some rows of overrides.db are invalid. They are ignored, and reported again at the next "
    "start.",
    "Make /var/lib/ebbgate writable.",
)
