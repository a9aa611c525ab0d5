# SPDX-License-Identifier: GPL-2.0-only
"""Parses single arguments of requests; each function raises UsageError. Pure."""

from __future__ import annotations

import re
from typing import Final

from ebbgate.errors import UsageError
from ebbgate.intents.protocol import NAME_LENGTH_MAX
from ebbgate.model.hot_set import ChunkRange, ranges_from_text
from ebbgate.model.volume import Mode
from ebbgate.model.warm import JobAction
from ebbgate.policy.language.yaml_events import BYTES_MAX
from ebbgate.text import clean_text
from ebbgate.units import DAY_NS, INT64_MAX, KIB, format_bytes, format_ns

OVERRIDE_NS_MAX: Final = 30 * DAY_NS
"""A longer override should be made without an end."""
POLICY_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
"""The name of a policy file without `.yaml`."""
ADVICE_ID: Final = re.compile(r"EBB-[0-9]{3}")
_WORD_MAX: Final = 64
_PATH_BYTES_MAX: Final = 4095
"""As in the kernel (PATH_MAX, without the end of the text)."""
_RATE_MIN: Final = 64 * KIB
_HALF_PAIR: Final = re.compile(r"[\ud800-\udfff]")


def parse_text(value: object) -> str:
    """Return a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise UsageError("must be a text that is not empty")
    return value


def parse_word(value: object) -> str:
    """Return a short text for one line of a terminal."""
    text = parse_text(value)
    if len(text) > _WORD_MAX:
        raise UsageError(f"must not be longer than {_WORD_MAX} characters")
    if clean_text(text) != text:
        raise UsageError("has a character that cannot be displayed", "use plain characters")
    return text


def parse_flag(value: object) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise UsageError("must be true or false")
    return value


def parse_mode(value: object) -> Mode:
    """Return a mode."""
    if not isinstance(value, str) or value not in tuple(Mode):
        raise UsageError(f"unknown mode {_shown(value)}", f"known modes: {', '.join(Mode)}")
    return Mode(value)


def parse_duration(value: object) -> int:
    """Return a duration in ns, up to `OVERRIDE_NS_MAX`."""
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise UsageError("must be a time in whole nanoseconds", "for example 600000000000: 10 min")
    if value > OVERRIDE_NS_MAX:
        raise UsageError(f"{format_ns(value)} is longer than 30 days", "omit the time")
    return value


def parse_advice(value: object) -> str:
    """Return the number of an advice."""
    if not isinstance(value, str) or not ADVICE_ID.fullmatch(value):
        raise UsageError(f"{_shown(value)} is not the number of an advice", "for example EBB-206")
    return value


def parse_row_id(value: object) -> int:
    """Return the number of a knob write."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= INT64_MAX:
        raise UsageError(
            f"{_shown(value)} is not the number of a knob write", "see the decisions of a volume"
        )
    return value


def parse_path(value: object) -> str:
    """Return an absolute path."""
    text = parse_text(value)
    if not text.startswith("/") or len(text.encode(errors="replace")) > _PATH_BYTES_MAX:
        raise UsageError(f"must begin with / and have at most {_PATH_BYTES_MAX} bytes")
    if clean_text(text, _PATH_BYTES_MAX) != text:
        raise UsageError("has a character that cannot be displayed", "rename the file")
    return text


def parse_bytes(value: object) -> int:
    """Return a number of bytes."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= INT64_MAX:
        raise UsageError("must be a number of bytes", "for example 1073741824")
    return value


def parse_ranges(value: object) -> tuple[ChunkRange, ...]:
    """Return hot ranges; `check_ranges` checks what they are."""
    try:
        return ranges_from_text(parse_text(value))
    except ValueError as error:
        raise UsageError(str(error), "see the documentation of the control socket") from error


def parse_uuid(value: object) -> str:
    """Return the uuid of a volume; or its name, which has the same bounds."""
    text = parse_text(value)
    if len(text) > NAME_LENGTH_MAX or clean_text(text) != text:
        raise UsageError(f"must be at most {NAME_LENGTH_MAX} plain characters")
    return text


def parse_rate(value: object) -> int:
    """Return bytes per second."""
    if parse_bytes(value) < _RATE_MIN:
        raise UsageError(f"must be at least {format_bytes(_RATE_MIN)} per second")
    return parse_bytes(value)


def parse_job_number(value: object) -> int:
    """Return the number of a job."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= INT64_MAX:
        raise UsageError(f"{_shown(value)} is not the number of a job", "list them: ebbgate jobs")
    return value


def parse_pin_number(value: object) -> int:
    """Return the number of a pin."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= INT64_MAX:
        raise UsageError(f"{_shown(value)} is not the number of a pin", "list them: ebbgate pins")
    return value


def parse_job_action(value: object) -> JobAction:
    """Return what to do with a job."""
    if not isinstance(value, str) or value not in tuple(JobAction):
        raise UsageError(f"unknown action {_shown(value)}", f"known: {', '.join(JobAction)}")
    return JobAction(value)


def parse_policy_name(value: object) -> str:
    """Return the name of a policy."""
    if not isinstance(value, str) or not POLICY_NAME.fullmatch(value):
        raise UsageError("must have only a-z, 0-9 and -, at most 64 of them", "for example night")
    return value


def parse_policy_text(value: object) -> str:
    """Return the text of a policy."""
    text = parse_text(value)
    # Half of a surrogate pair: JSON can have it, a file cannot.
    if _HALF_PAIR.search(text):
        raise UsageError("must be Unicode text", "save it in UTF-8")
    length = len(text.encode())
    if length > BYTES_MAX:
        why = f"must not be longer than {format_bytes(BYTES_MAX)}, but has {format_bytes(length)}"
        raise UsageError(why, "split it into two policies")
    return text


def _shown(value: object) -> str:
    return repr(clean_text(str(value), _WORD_MAX))
