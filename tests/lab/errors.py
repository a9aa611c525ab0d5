# SPDX-License-Identifier: GPL-2.0-only
"""What can go wrong in the lab, kept apart from what can go wrong in the product.

Pure.

    LabError             anything below
    |- NoLab             this machine cannot have a lab at all: tests skip, with this reason
    |- LostGuest         the guest died or fell silent: infrastructure, exit code 69
    |  '- SilentGuest    the same of one that runs, but does not answer in time
    |- CommandFailed     a command that a test relied on failed, on the host or in the guest
    '- UncleanStack      a stack was left with a changed knob, a kernel warning or a bad state
"""

from __future__ import annotations

from collections.abc import Sequence

# sysexits.h EX_UNAVAILABLE; no test runner uses it for a failed assertion.
EXIT_LOST_GUEST = 69


class LabError(Exception):
    """Any failure of the lab."""


class NoLab(LabError):
    """This machine cannot run the lab; the text is one line that says what is missing."""


class LostGuest(LabError):
    """The guest ended or stopped answering; says nothing about the product under test."""


class SilentGuest(LostGuest):
    """The guest has not ended, but does not answer in time."""


class CommandFailed(LabError):
    """A command that had to succeed did not; the text holds its output."""


class UncleanStack(LabError):
    """A stack was left in a wrong state; the text lists every finding."""

    @classmethod
    def raise_if(cls, findings: Sequence[str], error: BaseException | None) -> None:
        """Raise with the findings, if any; or add them to the error that is being handled."""
        text = "\n".join(findings)
        if text and error is not None:
            error.add_note(f"the stack was left unclean, too:\n{text}")
        elif text:
            raise cls(text)
