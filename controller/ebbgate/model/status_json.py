# SPDX-License-Identifier: GPL-2.0-only
"""A volume's status to JSON and back. Pure.

Reading is tolerant: a key that is missing or has another type, as another version may have sent
it, leaves the field at its default.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Union, get_args, get_origin, get_type_hints

from ebbgate.model.status import VolumeStatus, VolumeTotals

_Decode = Callable[[object], object]


def status_to_json(status: VolumeStatus) -> dict[str, object]:
    """Return the status as a JSON object."""
    return {key: _encoded(getattr(status, name)) for name, key in _keys(VolumeStatus)}


def status_from_json(document: Mapping[str, object]) -> VolumeStatus:
    """Return the status that a JSON object holds; what cannot be read has its default."""
    found = _decoder(VolumeStatus)(document)
    assert isinstance(found, VolumeStatus)
    return found


def totals_from_json(totals: Mapping[str, object]) -> VolumeTotals:
    """Return the totals that a JSON object holds; what cannot be read has its default."""
    found = _decoder(VolumeTotals)(totals)
    assert isinstance(found, VolumeTotals)
    return found


def _encoded(value: object) -> object:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, tuple):
        return [_encoded(each) for each in value]
    if isinstance(value, Mapping):
        return {str(key): _encoded(each) for key, each in value.items()}
    cls: type[object] = type(value)
    if is_dataclass(cls):
        return {key: _encoded(getattr(value, name)) for name, key in _keys(cls)}
    return value


@cache
def _keys(cls: type) -> tuple[tuple[str, str], ...]:
    """Each field of a dataclass with its key in JSON."""
    return tuple((each.name, each.metadata.get("json", each.name)) for each in fields(cls))


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
    if kind is object:
        return lambda value: value
    if issubclass(kind, StrEnum):
        return kind
    return _scalar(kind)


def _object(cls: type) -> _Decode:
    hints = get_type_hints(cls)
    known = [(name, key, _decoder(hints[name])) for name, key in _keys(cls)]
    required = {
        each.name
        for each in fields(cls)
        if each.default is MISSING and each.default_factory is MISSING
    }

    def decode(value: object) -> object:
        if not isinstance(value, Mapping):
            raise ValueError
        found = {}
        for name, key, decoder in known:
            try:
                found[name] = decoder(value[key])
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
    accepted = (int, float) if kind is float else (kind,)

    def decode(value: object) -> object:
        # In Python a bool is an int.
        if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
            raise ValueError
        return value

    return decode
