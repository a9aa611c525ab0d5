# SPDX-License-Identifier: GPL-2.0-only
"""One way out for every command: a JSON document, or a page for people. I/O: stdout and stderr."""

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
    """Print the document as JSON, or let `draw` put it on a page."""
    if context.json:
        print_json(document)
        return
    # The table library takes longer to import than most commands take to run: only for people.
    from ebbgate.cli.page import Page  # noqa: PLC0415

    draw(Page(), document)


def print_json(document: Document) -> None:
    """One document, keys in the order in which they were put in."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    sys.stdout.write(f"{escape_json(text)}\n")
    sys.stdout.flush()


def print_error(error: EbbgateError, as_json: bool) -> None:
    """On stderr: one line and the next step, or the one error shape."""
    if as_json:
        body = {"code": error.exit_code, "message": error.message, "hint": error.hint}
        print(escape_json(json.dumps({"error": body})), file=sys.stderr)
    else:
        print(f"ebbgate: {clean_lines(str(error))}", file=sys.stderr)


def print_note(text: str) -> None:
    """On stderr, so that stdout holds nothing but the answer."""
    print(clean_lines(text), file=sys.stderr, flush=True)
