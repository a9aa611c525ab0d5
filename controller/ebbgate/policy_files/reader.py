# SPDX-License-Identifier: GPL-2.0-only
"""Reads policy files: shipped ones and those of an administrator. I/O: reads files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from ebbgate.errors import ConfigError, InternalError, NotFound
from ebbgate.policy.language.document import PolicyDocument
from ebbgate.policy.language.link import load
from ebbgate.policy.language.parse import Parsed, parse
from ebbgate.policy.language.yaml_events import BYTES_MAX
from ebbgate.units import MIB, format_bytes

SUFFIXES: Final = (".yaml", ".yml")
FILES_MAX: Final = 64
TOTAL_BYTES_MAX: Final = 1 * MIB
"""Of all files of a folder together: parsing more would take many seconds."""
# Beside the installed package, or at the top of the source tree.
_SHIPPED: Final = tuple(Path(__file__).resolve().parents[up] / "policies" for up in (2, 3))


def shipped_folder() -> Path:
    """Return the folder of the shipped policies. Raises InternalError."""
    for folder in _SHIPPED:
        if folder.is_dir():
            return folder
    raise InternalError(f"the shipped policies are missing in {_SHIPPED[0]}", "reinstall ebbgate")


def shipped() -> tuple[PolicyDocument, ...]:
    """Return the shipped policies. Raises InternalError if one of them is damaged."""
    loaded = load(read_all(policy_files(shipped_folder())))
    if loaded.problems:
        raise InternalError(str(loaded.problems[0]), "reinstall ebbgate")
    return loaded.documents


def policy_files(folder: Path) -> list[Path]:
    """Return the policy files of a folder in their order; none if there is no folder."""
    return [path for path in _named_as_policies(folder) if path.is_file()]


def _named_as_policies(folder: Path) -> list[Path]:
    """Leave out names that begin with a dot: copies that tools and editors write beside a file."""
    if not folder.is_dir():
        return []
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix in SUFFIXES and not path.name.startswith(".")
    )


def check_links(folder: Path) -> None:
    """Raises ConfigError where the folder or a policy file in it is a link to nothing.

    To take it for a missing file would tune volumes that this policy may forbid to touch.
    """
    for path in (folder, *_named_as_policies(folder)):
        if path.is_symlink() and not path.exists():
            raise ConfigError(
                f"{path} is a link to {path.readlink()}, which is missing",
                "restore or mount the target, or remove the link",
            )


def check_bounds(folder: Path, sizes_bytes: Mapping[Path, int]) -> None:
    """Raises ConfigError for more files, or larger ones, than ebbgate reads in a folder."""
    if len(sizes_bytes) > FILES_MAX:
        raise ConfigError(
            f"{folder} has {len(sizes_bytes)} policy files; at most {FILES_MAX} are allowed",
            "move those that are not needed to another folder",
        )
    total = sum(sizes_bytes.values())
    if total > TOTAL_BYTES_MAX:
        raise ConfigError(
            f"the policy files in {folder} have {format_bytes(total)}; at most"
            f" {format_bytes(TOTAL_BYTES_MAX)} are allowed",
            "move those that are not needed to another folder",
        )


@lru_cache(maxsize=FILES_MAX + 8)
def parsed(text: str | bytes, file: str) -> Parsed:
    """Parse with a cache. For any thread."""
    return parse(text, file)


def read_all(paths: Iterable[Path]) -> dict[str, bytes]:
    """Read the files, by path. Raises NotFound or ConfigError."""
    return {str(path): read_policy(path) for path in paths}


def read_policy(path: Path) -> bytes:
    """Read a file, or one byte more than allowed. Raises NotFound, ConfigError."""
    try:
        with path.open("rb") as file:
            return file.read(BYTES_MAX + 1)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(f"{path}: no such file", "check the path") from error
    except IsADirectoryError as error:
        hint = f"name its files, for example {path / '*.yaml'}"
        raise ConfigError(f"{path}: is a folder, not a policy file", hint) from error
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be read: {error.strerror}", "check its permissions"
        ) from error
