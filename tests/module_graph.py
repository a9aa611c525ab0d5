# SPDX-License-Identifier: GPL-2.0-only
"""Draws which package imports which: `python -m tests.module_graph [--write]`.

I/O: reads the sources; `--write` replaces the drawing in controller/README.md.
"""

from __future__ import annotations

import sys
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

import grimp

ROOT: Final = "ebbgate"
README: Final = Path(__file__).parents[1] / "controller" / "README.md"
BEGIN: Final = "<!-- module graph: python -m tests.module_graph --write -->\n"
END: Final = "<!-- end of module graph -->\n"

Graph = dict[str, set[str]]


def packages() -> Graph:
    """Return the packages below ROOT, each with those that it imports."""
    graph = grimp.build_graph(ROOT, cache_dir=None)
    names = {m.split(".")[1] for m in graph.modules if m.count(".") > 1}
    found: Graph = {name: set() for name in names}
    for module in graph.modules:
        importer = _package(module)
        if importer in names:
            imported = map(_package, graph.find_modules_directly_imported_by(module))
            found[importer] |= (set(imported) & names) - {importer}
    return found


def reduced(graph: Graph) -> Graph:
    """Leave out each arrow that follows from others. Raises CycleError."""
    below: Graph = {}
    for name in TopologicalSorter(graph).static_order():
        below[name] = graph[name].union(*(below[each] for each in graph[name]))
    return {
        name: {each for each in uses if not any(each in below[other] for other in uses)}
        for name, uses in graph.items()
    }


def mermaid(graph: Graph) -> str:
    """Return the drawing as a block of Mermaid in Markdown."""
    lines = [f"    {name} --> {each}" for name in sorted(graph) for each in sorted(graph[name])]
    return "\n".join(["```mermaid", "flowchart TD", *lines, "```", ""])


def drawn(text: str, block: str) -> str:
    """Return the text of the README with this block between the markers."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}{block}{END}{tail}"


def _package(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def main() -> int:
    """Print the drawing, or write it into the README."""
    block = mermaid(reduced(packages()))
    if "--write" in sys.argv[1:]:
        README.write_text(drawn(README.read_text(), block))
    else:
        print(block, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
