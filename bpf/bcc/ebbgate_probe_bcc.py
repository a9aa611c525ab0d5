#!/usr/bin/python3 -I
# SPDX-License-Identifier: GPL-2.0-only
"""ebbgate-probe for kernels without BTF: bcc compiles and loads the programs.

Then this process becomes `ebbgate-probe --maps ... --programs ...`, which does the rest. I/O: reads
the kernel's headers, loads BPF programs.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

try:
    import bcc
except ImportError as error:
    sys.stderr.write(f"ebbgate-probe-bcc: it needs bcc: install python3-bpfcc: {error}\n")
    raise SystemExit(69) from error

_UNSUPPORTED, _INTERNAL, _NO_PRIVILEGE = 69, 70, 77
_HERE = Path(__file__).resolve().parent
_PROBE = _HERE / "ebbgate-probe"
# In the source tree, and installed.
_SOURCES = (_HERE / "bcc/programs.bcc", _HERE.parent / "lib/ebbgate/bcc/programs.bcc")
_MODULES = Path("/lib/modules")
_KERNEL_HEADERS = Path("/sys/kernel/kheaders.tar.xz")
_ARRAY, _MMAPABLE = 2, 1024
_KEPT: list[Any] = []


@dataclass(frozen=True, slots=True)
class MapShape:
    """What bpf(2) needs to make a map."""

    type: int
    key_bytes: int
    value_bytes: int
    entries: int
    flags: int


# The loader does not use these; sizes.bpf.h checks the sizes.
_PRIVATE_MAPS = {
    "joins": MapShape(_ARRAY, 4, 2048 * 4 * 32, 1, _MMAPABLE),
    "submitters": MapShape(_ARRAY, 4, 1024 * 32, 1, _MMAPABLE),
}


def _fail(code: int, text: str) -> NoReturn:
    sys.stderr.write(f"ebbgate-probe-bcc: {text}\n")
    raise SystemExit(code)


def _check_headers() -> None:
    release = os.uname().release
    build = _MODULES / release / "build"
    if "BCC_KERNEL_SOURCE" in os.environ or build.exists() or _KERNEL_HEADERS.exists():
        return
    _fail(
        _UNSUPPORTED,
        f"bcc needs the headers of this kernel, and there is no {build}: install"
        f" linux-headers-{release} (on systems with rpm kernel-devel-{release})",
    )


def _loader_maps() -> dict[str, MapShape]:
    """Return the maps that the loader shares with the programs."""
    text = subprocess.run([_PROBE, "--print-maps"], check=True, stdout=subprocess.PIPE, text=True)
    lines = (line.split() for line in text.stdout.splitlines())
    return {name: MapShape(*map(int, shape)) for name, *shape in lines}


def _create(maps: Mapping[str, MapShape]) -> dict[str, int]:
    return {name: _create_map(name, shape) for name, shape in maps.items()}


def _create_map(name: str, shape: MapShape) -> int:
    fd: int = bcc.libbcc.lib.bcc_create_map(
        shape.type, name.encode(), shape.key_bytes, shape.value_bytes, shape.entries, shape.flags
    )
    if fd < 0:
        _fail(_INTERNAL, f"the kernel refuses the map {name}: {os.strerror(ctypes.get_errno())}")
    return fd


def _definitions(maps: Mapping[str, MapShape], fds: Mapping[str, int]) -> list[str]:
    return [
        f"-D{name.upper()}_{what}={value}"
        for name, shape in maps.items()
        for what, value in (
            ("FD", fds[name]),
            ("BYTES", shape.value_bytes),
            ("ENTRIES", shape.entries),
        )
    ]


def _list(fds: Mapping[str, int]) -> str:
    """Return descriptors as the loader takes them, and keep them open for it."""
    for fd in fds.values():
        os.set_inheritable(fd, True)
    return ",".join(f"{name}={fd}" for name, fd in fds.items())


def _load(source: str, maps: Mapping[str, MapShape], fds: Mapping[str, int]) -> dict[str, int]:
    """Return the programs of a source by their tracepoints."""
    try:
        # Headers of kernels that are newer than bcc have much to warn of.
        module = bcc.BPF(text=source, cflags=["-w", *_definitions(maps, fds)])
    except Exception as error:  # bcc raises nothing more special
        _fail(
            _UNSUPPORTED,
            f"bcc {bcc.__version__} cannot compile the programs with the headers of"
            f" {os.uname().release}: boot a kernel with BTF, or install another python3-bpfcc"
            f" ({error})",
        )
    # bcc would unload them.
    _KEPT.append(module)
    try:
        return {
            name: module.load_func(f"on_{name}", bcc.BPF.RAW_TRACEPOINT).fd
            for name in re.findall(r"^int on_(\w+)\(", source, re.MULTILINE)
        }
    except Exception as error:
        _fail(_INTERNAL, f"the kernel refuses the programs: {error}")


def main() -> None:
    """Load the programs and become the loader."""
    if os.geteuid() != 0:
        _fail(_NO_PRIVILEGE, "it loads BPF programs: run it as root")
    _check_headers()
    shared = _loader_maps()
    fds = _create(shared)
    source = next(path for path in _SOURCES if path.exists())
    maps = shared | _PRIVATE_MAPS
    programs = _load(source.read_text(), maps, fds | _create(_PRIVATE_MAPS))
    os.execv(
        _PROBE, [str(_PROBE), "--maps", _list(fds), "--programs", _list(programs), *sys.argv[1:]]
    )


if __name__ == "__main__":
    main()
