# SPDX-License-Identifier: GPL-2.0-only
"""Joins the programs of the libbpf probe into one file that bcc can compile.

`flatten.py SOURCE...` prints it. Raw tracepoints may not follow pointers to kernel memory, so every
access through a variable with one of the names in `_POINTER` becomes a read; the kernel refuses a
program in which one was overlooked.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
# The folder of the programs comes last: compat.bpf.h is replaced.
_FOLDERS = (_HERE, _HERE.parent)
_INCLUDE = re.compile(r'^#include "([^"]+)"\n', re.MULTILINE)
_LICENSE = re.compile(r'^char LICENSE\[\] SEC\("license"\) = "GPL";\n', re.MULTILINE)
_PROGRAM = re.compile(
    r'^PROGRAM\((?P<name>\w+), "(?P<tracepoint>\w+)",\s+(?P<call>\w+\([^()]*\)),\s+'
    r"(?P<arguments>[^()]*)\)\n",
    re.MULTILINE,
)
# Programs for kernels that the libbpf probe serves.
_OTHER_PROGRAM = re.compile(
    r'^PROGRAM_\w+\(\w+, "\w+",\s+(?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\n', re.MULTILINE
)
_ARGUMENT = re.compile(r"(?P<type>.*?)(?P<name>\w+)")
_POINTER = re.compile(r"(?<!&)\b(?P<name>bio|rq|part|disk)(?P<members>(?:->\w+(?:\.\w+)*)+)")


def flatten(sources: list[str]) -> str:
    """Return the sources with what they include, each file once."""
    seen = {"compat.bpf.h"}
    text = "".join(_with_includes(name, seen) for name in sources)
    text = _POINTER.sub(_read, _OTHER_PROGRAM.sub("", _LICENSE.sub("", text)))
    return (_HERE / "compat.bpf.h").read_text() + _PROGRAM.sub(_function, text)


def _with_includes(name: str, seen: set[str]) -> str:
    if name in seen:
        return ""
    seen.add(name)
    path = next(path for folder in _FOLDERS if (path := folder / name).exists())
    return _INCLUDE.sub(lambda found: _with_includes(found[1], seen), path.read_text())


def _read(access: re.Match[str]) -> str:
    value = access["name"]
    for member in access["members"].split("->")[1:]:
        value = f"READ_KERNEL({value}, {member})"
    return value


def _function(program: re.Match[str]) -> str:
    """Return the function that bcc attaches, before the one that it calls.

    bcc would add reads of its own to a function that it has seen before.
    """
    tracepoint, name = program["tracepoint"], program["name"]
    arguments = " ".join(program["arguments"].split())
    types = [
        found["type"].strip() for found in map(_ARGUMENT.fullmatch, arguments.split(", ")) if found
    ]
    values = ", ".join(f"({type_})ctx->args[{i}]" for i, type_ in enumerate(types))
    zeros = ", ".join(f"({type_})0" for type_ in types)
    return (
        f"static int {name}({arguments});\n\n"
        f"int on_{tracepoint}(struct bpf_raw_tracepoint_args *ctx)\n{{\n"
        "\t/* Fails if the kernel's tracepoint has other arguments. */\n"
        f'\t_Static_assert(sizeof((trace_{tracepoint}({zeros}), 0)), "");\n'
        f"\treturn {name}({values});\n}}\n\n"
        f"static __always_inline int {name}({arguments})\n"
        f"{{\n\t{program['call']};\n\treturn 0;\n}}\n"
    )


if __name__ == "__main__":
    sys.stdout.write(flatten(sys.argv[1:]))
