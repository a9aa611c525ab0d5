# SPDX-License-Identifier: GPL-2.0-only
"""Writes the completion of `ebbgate` for bash, zsh and fish, as click makes it.

The scripts ask the program itself at each completion, so they know its commands and options.
`python -m manual.completion FOLDER` writes them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from click.shell_completion import get_completion_class

from ebbgate.cli.app import app

FILES: Final = {"bash": "ebbgate", "zsh": "_ebbgate", "fish": "ebbgate.fish"}
"""By shell, the name under which the shell looks for it."""

_ZSH_FIRST_CALL: Final = """

# zsh loads this file at the first completion, and expects the answer to it.
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _ebbgate_completion "$@"
fi
"""


def script(shell: str) -> str:
    """Return the script of a shell."""
    found = get_completion_class(shell)
    assert found is not None
    made = found(app, {}, "ebbgate", "_EBBGATE_COMPLETE")
    # `source` also looks for the version of the installed shell.
    text = made.source_template % made.source_vars()
    # The script of newer versions of click has this already.
    needs_call = shell == "zsh" and "loadautofunc" not in text
    return text.rstrip() + _ZSH_FIRST_CALL if needs_call else text


def main(folder: Path) -> None:
    """Write the scripts into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for shell, name in FILES.items():
        (folder / name).write_text(script(shell))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
