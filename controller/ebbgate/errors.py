# SPDX-License-Identifier: GPL-2.0-only
"""All errors that users can see, with their exit codes. Pure.

EbbgateError                 message, hint (the next step), exit code
  UsageError            64   the command line is wrong
  NotFound              66   no such volume, file or record
  Unavailable           69   the kernel, the probe or the daemon is not available
  InternalError         70   an internal error
  PermissionDenied      77   needs root
  ConfigError           78   error in a settings or policy file
  AlreadyRunning        75   another daemon is running
  ActuationError        74   a knob could not be written or restored
  OutputError           74   the output could not be written
"""

from __future__ import annotations


class EbbgateError(Exception):
    """An error with the next step for the person who reads it."""

    exit_code = 70

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message


class UsageError(EbbgateError):
    """The command line is wrong (EX_USAGE)."""

    exit_code = 64


class NotFound(EbbgateError):
    """No such volume, file or record (EX_NOINPUT)."""

    exit_code = 66


class Unavailable(EbbgateError):
    """The kernel, the probe or the daemon is not available (EX_UNAVAILABLE)."""

    exit_code = 69


class InternalError(EbbgateError):
    """An internal error (EX_SOFTWARE)."""

    exit_code = 70


class ActuationError(EbbgateError):
    """A knob could not be written or restored (EX_IOERR)."""

    exit_code = 74


class OutputError(EbbgateError):
    """The output could not be written (EX_IOERR). `reader_gone`: nobody reads the pipe."""

    exit_code = 74

    def __init__(self, message: str, *, reader_gone: bool) -> None:
        super().__init__(message)
        self.reader_gone = reader_gone


class AlreadyRunning(EbbgateError):
    """Another daemon is running (EX_TEMPFAIL)."""

    exit_code = 75


class PermissionDenied(EbbgateError):
    """Needs root (EX_NOPERM)."""

    exit_code = 77


class ConfigError(EbbgateError):
    """Error in a settings or policy file (EX_CONFIG)."""

    exit_code = 78
