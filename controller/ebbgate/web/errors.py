# SPDX-License-Identifier: GPL-2.0-only
"""The shape of every HTTP error. Pure."""

from __future__ import annotations

from typing import Final

from ebbgate.errors import (
    AlreadyRunning,
    ConfigError,
    EbbgateError,
    NotFound,
    PermissionDenied,
    Unavailable,
    UsageError,
)
from ebbgate.web.models.base import Model, doc

CODES: Final = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    413: "too_large",
    415: "unsupported_media_type",
    421: "misdirected_request",
    422: "unprocessable",
    429: "too_many_requests",
    500: "internal_error",
    503: "unavailable",
}
"""The code of each HTTP status that this API uses."""


class Place(Model):
    """A place in a text."""

    file: str = doc("Name of the file, or of the part of the request.")
    line: int = doc("From 1.", "line")
    column: int = doc("From 1.", "column")


class ErrorBody(Model):
    """What went wrong and what to do next."""

    code: str = doc("A stable word, for programs.", example="not_found")
    message: str = doc("What is wrong.")
    hint: str | None = doc("The next step; null if there is none.")
    place: Place | None = doc("The place in a text; null if unknown.")


class Error(Model):
    """The shape of every answer with a status of 400 or more."""

    error: ErrorBody = doc("The error.")


class ApiError(Exception):
    """An error with its HTTP status. `retry_after_s`: when to try again."""

    def __init__(
        self,
        status: int,
        message: str,
        hint: str = "",
        *,
        code: str = "",
        place: Place | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        code = code or CODES.get(status, "error")
        self.body = Error(
            error=ErrorBody(code=code, message=message, hint=hint or None, place=place)
        )
        self.retry_after_s = retry_after_s


_STATUS: Final = (
    (NotFound, 404),
    ((UsageError, ConfigError), 422),
    ((Unavailable, PermissionDenied), 503),
    (AlreadyRunning, 409),
)


def api_error(error: EbbgateError) -> ApiError:
    """Return the error of a lower module as an HTTP error."""
    hint = error.hint
    if isinstance(error, PermissionDenied):
        hint = "the user of ebbgate-web must be in group ebbgate, which must own the file"
    status = next((number for kind, number in _STATUS if isinstance(error, kind)), 500)
    retry_after_s = 2.0 if status == 503 else None  # noqa: PLR2004 - a status is its own name
    return ApiError(status, error.message, hint, retry_after_s=retry_after_s)
