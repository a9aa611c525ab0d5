# SPDX-License-Identifier: GPL-2.0-only
"""Writes the catalogue of log messages for `journalctl -x`, from the code.

`python -m manual.log_catalog FOLDER` writes it. I/O: writes the file.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ebbgate.log_messages import history, service, volumes
from ebbgate.log_messages.message import LogMessage

FILE: Final = "ebbgate.catalog"
_WIDTH: Final = 80


def messages() -> dict[str, LogMessage]:
    """Return every message by its name in the code."""
    return {
        name: value
        for module in (service, volumes, history)
        for name, value in vars(module).items()
        if isinstance(value, LogMessage)
    }


def catalog() -> str:
    """Return the catalogue in systemd's format."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# SPDX-License-Identifier: GPL-2.0-only"
    yield "# Made from the code by packaging/manual; do not edit."
    for message in messages().values():
        yield ""
        yield f"-- {message.id}"
        yield f"Subject: {message.title}"
        yield "Defined-By: ebbgate"
        yield "Documentation: man:ebbgate-messages(7)"
        yield ""
        yield from textwrap.wrap(message.meaning, _WIDTH)
        yield ""
        yield from textwrap.wrap(f"What to do: {message.action}", _WIDTH)


def main(folder: Path) -> None:
    """Write the catalogue into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(catalog())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
