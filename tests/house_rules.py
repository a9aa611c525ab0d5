# SPDX-License-Identifier: GPL-2.0-only
"""House rules that no linter checks: licences, sizes, no traces of one machine, public names.

I/O: reads the tracked files. `python -m tests.house_rules` prints each breach and exits 1.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from ebbgate.kernel.run import run

REPO = Path(__file__).resolve().parent.parent
SPDX = "SPDX-License-Identifier: GPL-2.0-only"
SOURCE_SUFFIXES = frozenset(
    {".py", ".c", ".h", ".sh", ".toml", ".in", ".txt", ".sql", ".ts", ".yml"}
)
CODE_SUFFIXES = frozenset({".py", ".c", ".h", ".sh"})
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
PUBLIC_DESPITE_NAME = frozenset({"_exit", "_replace"})
"""Of `os`, and of named tuples."""
TOP_LEVEL = frozenset(
    {
        *("bpf", "controller", "webui", "policies", "lvm-scripts", "tests", "packaging"),
        *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml", "LICENSE"),
    }
)
# Folders of one person's machine have no place in the project; nor has an address to install from.
_MACHINE_PATH = re.compile(r"(?<![\w.$}*/])/(?:home|root|Users|work|workspace|tmp/w)/[\w.-]+")
_INDEX_OPTION = re.compile(r"--(?:extra-)?(?:index-url|find-links|trusted-host)[ =]+\S*//")


def tracked(repo: Path) -> list[Path]:
    """Every file that is tracked or about to be, as a path relative to the repository."""
    listing = run(["git", "-C", str(repo), "ls-files", "-co", "--exclude-standard"]).stdout
    return [Path(line) for line in sorted(set(listing.splitlines())) if (repo / line).is_file()]


def spdx_missing(path: Path, text: str) -> Iterator[str]:
    """The licence line is within the first lines of each source file that is not empty."""
    is_source = path.suffix in SOURCE_SUFFIXES or text.startswith("#!") or path.name == "Makefile"
    if is_source and text and SPDX not in "\n".join(text.splitlines()[:5]):
        yield f"{path}: no line `{SPDX}`"


def too_long(path: Path, text: str) -> Iterator[str]:
    """Code files and Python functions stay short enough to be read in one go."""
    lines = len(text.splitlines())
    if path.suffix in CODE_SUFFIXES and lines > FILE_LINES_MAX:
        yield f"{path}: {lines} lines, at most {FILE_LINES_MAX}: split it"
    if path.suffix != ".py":
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES_MAX:
                where = f"{path}:{node.lineno}: {node.name}()"
                yield f"{where} has {length} lines, at most {FUNCTION_LINES_MAX}"


def machine_paths(path: Path, text: str) -> Iterator[str]:
    """No path of somebody's machine and no address of a package index."""
    for number, line in enumerate(text.splitlines(), start=1):
        for pattern in (_MACHINE_PATH, _INDEX_OPTION):
            found = pattern.search(line)
            if found:
                yield f"{path}:{number}: {found.group(0)!r} belongs to one machine only"


def stray(path: Path, _text: str) -> Iterator[str]:
    """Nothing at the top but the agreed folders and files."""
    top = path.parts[0]
    if top not in TOP_LEVEL and not top.startswith("."):
        yield f"{path}: {top} does not belong at the top of the repository"


def private_access(path: Path, text: str) -> Iterator[str]:
    """Tests use what is public: they change less often than what is not."""
    if path.suffix != ".py" or path.parts[0] != "tests":
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and not _is_own(node.value):
            names = [node.attr]
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            if re.match("_[a-zA-Z]", name) and name not in PUBLIC_DESPITE_NAME:
                yield f"{path}:{node.lineno}: {name} is private: use or make a public name"


def _is_own(value: ast.expr) -> bool:
    """Return whether it is the object whose method this is, or its base class."""
    if isinstance(value, ast.Call):
        value = value.func
    return isinstance(value, ast.Name) and value.id in ("self", "cls", "super")


RULES: tuple[Callable[[Path, str], Iterator[str]], ...] = (
    spdx_missing,
    too_long,
    machine_paths,
    stray,
    private_access,
)


def breaches(repo: Path) -> Iterator[str]:
    """Every breach in the repository; binary files are only looked at by name."""
    for path in tracked(repo):
        try:
            text = (repo / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            text = ""
        for rule in RULES:
            yield from rule(path, text)


def main() -> int:
    found = list(breaches(REPO))
    for line in found:
        print(line)
    print(f"house rules: {len(found)} breaches in {len(tracked(REPO))} files")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
