# SPDX-License-Identifier: GPL-2.0-only
"""Prints the result of a command as JSON or text, and errors. I/O: stdout and stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ebbgate.cli.context import Context
from ebbgate.errors import EbbgateError
from ebbgate.text import clean_lines, escape_json

if TYPE_CHECKING:
    from ebbgate.cli.page import Page

Document = Mapping[str, Any]


def emit(context: Context, document: Document, draw: Callable[[Page, Document], None]) -> None:
    """Print the document as JSON, or as text with `draw`."""
    if context.json:
        print_json(document)
        return
    # Imported late: the table library takes longer to import than most commands take to run.
    from ebbgate.cli.page import Page  # noqa: PLC0415

    draw(Page(), document)


def print_json(document: Document) -> None:
    """Print one JSON document; keys keep their order."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    sys.stdout.write(f"{escape_json(text)}\n")
    sys.stdout.flush()


def print_error(error: EbbgateError, as_json: bool) -> None:
    """Print an error on stderr: message and next step, or JSON."""
    if as_json:
        body = {"code": error.exit_code, "message": error.message, "hint": error.hint}
        print(escape_json(json.dumps({"error": body})), file=sys.stderr)
    else:
        print(f"ebbgate: {clean_lines(str(error))}", file=sys.stderr)


def print_note(text: str) -> None:
    """Print a note on stderr, so that stdout has only the result."""
    print(clean_lines(text), file=sys.stderr, flush=True)
