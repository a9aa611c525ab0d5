# SPDX-License-Identifier: GPL-2.0-only
"""The status of volumes and daemon to JSON and back. Pure.

Reading is tolerant: a key that is missing or has another type, as another version may have sent
it, leaves the field at its default. An object without a field that has no default is unreadable.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Hashable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Final, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from ebbgate.model.pin import PinStatus
from ebbgate.model.status import DaemonStatus, VolumeStatus
from ebbgate.model.warm import JobStatus

_Decode = Callable[[object], object]
_S = TypeVar("_S")
_PLAIN: Final = frozenset({int, float, bool, str, type(None)})


def status_to_json(
    status: VolumeStatus | DaemonStatus | JobStatus | PinStatus,
) -> dict[str, object]:
    """Return the status as a JSON object."""
    found = _encoded(status)
    assert isinstance(found, dict)
    return found


def status_from_text(cls: type[_S], text: str) -> _S:
    """Return the status in a JSON text; all defaults if it is no JSON object."""
    try:
        return status_from_json(cls, json.loads(text))
    except (ValueError, RecursionError):
        return cls()


def status_from_json(cls: type[_S], document: object) -> _S:
    """Return the status in a JSON object. Raises ValueError if it is no object."""
    # mypy does not know that every class is hashable.
    found = _decoder(cast("Hashable", cls))(document)
    assert isinstance(found, cls)
    return found


def _encoded(value: object) -> object:
    cls: type[object] = type(value)
    if cls in _PLAIN:
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, tuple):
        return [each if type(each) in _PLAIN else _encoded(each) for each in value]
    if isinstance(value, Mapping):
        return {str(key): _encoded(each) for key, each in value.items()}
    if not is_dataclass(cls):
        raise TypeError(f"{cls.__name__} is no part of a status")
    return {key: _encoded(getattr(value, name)) for name, key, _ in _keys(cls)}


@cache
def _keys(cls: type) -> tuple[tuple[str, str, str], ...]:
    """Each field of a dataclass with its key in JSON, and its key in that of version 0.1."""
    found = []
    for each in fields(cls):
        key = each.metadata.get("json", each.name)
        found.append((each.name, key, each.metadata.get("json_0_1", key)))
    return tuple(found)


@cache
def _decoder(kind: type) -> _Decode:
    """What reads values of a type; it raises ValueError for a value of another type."""
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _optional(_decoder(args[0]))
    if origin is tuple:
        return _list(_decoder(args[0]))
    if origin is Mapping:
        return _mapping(_decoder(args[0]), _decoder(args[1]))
    if is_dataclass(kind):
        return _object(kind)
    if issubclass(kind, StrEnum):
        return kind
    return _scalar(kind)


def _object(cls: type) -> _Decode:
    hints = get_type_hints(cls)
    known = [(name, key, old, _decoder(hints[name])) for name, key, old in _keys(cls)]
    required = {
        each.name
        for each in fields(cls)
        if each.default is MISSING and each.default_factory is MISSING
    }

    def decode(value: object) -> object:
        if not isinstance(value, Mapping):
            raise ValueError
        found = {}
        for name, key, old, decoder in known:
            try:
                found[name] = decoder(value[key if key in value else old])
            except (KeyError, ValueError):
                continue
        if not required <= found.keys():
            raise ValueError
        return cls(**found)

    return decode


def _optional(decoder: _Decode) -> _Decode:
    return lambda value: None if value is None else decoder(value)


def _list(decoder: _Decode) -> _Decode:
    def decode(value: object) -> object:
        if not isinstance(value, list | tuple):
            raise ValueError
        return tuple(decoder(each) for each in value)

    return decode


def _mapping(key_decoder: _Decode, decoder: _Decode) -> _Decode:
    def decode(value: object) -> object:
        if not isinstance(value, Mapping):
            raise ValueError
        return {key_decoder(key): decoder(each) for key, each in value.items()}

    return decode


def _scalar(kind: type) -> _Decode:
    # Not with isinstance: in Python a bool is an int.
    accepted = (int, float) if kind is float else (kind,)

    def decode(value: object) -> object:
        if type(value) not in accepted:
            raise ValueError
        return value

    return decode
