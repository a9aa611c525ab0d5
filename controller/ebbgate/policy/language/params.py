# SPDX-License-Identifier: GPL-2.0-only
"""Applies the parameters of strategies. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from ebbgate.model.volume import Kind
from ebbgate.policy.defaults import IDLE_DESTAGE, STREAM_BYPASS
from ebbgate.policy.language.param_tables import DESTAGE, STREAMS, Param
from ebbgate.policy.language.record import ObjectSchema
from ebbgate.policy.language.shapes import Values
from ebbgate.policy.strategies.destage_state import DestageParams
from ebbgate.policy.strategies.stream_bypass import StreamParams

Params = TypeVar("Params", DestageParams, StreamParams)

_PARAMS: Final[Mapping[str, tuple[tuple[Param, ...], object]]] = {
    IDLE_DESTAGE: (DESTAGE, DestageParams()),
    STREAM_BYPASS: (STREAMS, StreamParams()),
}


def _ordered(low: str, high: str, defaults: Mapping[str, int]) -> Any:
    """Return a check that one parameter is not above another, whichever of them is given."""

    def check(values: Values) -> Iterator[tuple[str, str, str]]:
        at = {**defaults, **values}
        if (low in values or high in values) and at[low] > at[high]:
            yield (high if high in values else low, f"{low} is greater than {high}", "swap them")

    return check


_CHECKS: Final = {
    IDLE_DESTAGE: _ordered(
        "wait_min",
        "wait_max",
        {"wait_min": DestageParams().wait.min_ns, "wait_max": DestageParams().wait.max_ns},
    ),
    STREAM_BYPASS: _ordered(
        "cutoff_min",
        "cutoff_max",
        {
            "cutoff_min": StreamParams().cutoff_floor_bytes,
            "cutoff_max": StreamParams().cutoff_ceiling_bytes,
        },
    ),
}


def _record(strategy: str) -> ObjectSchema:
    params, defaults = _PARAMS[strategy]
    fields = tuple(param.field(defaults) for param in params)
    return ObjectSchema(f"the parameters of {strategy}", fields, _CHECKS[strategy])


RECORDS: Final[Mapping[str, ObjectSchema]] = {name: _record(name) for name in _PARAMS}


def with_values(params: Params, strategy: str, values: Mapping[str, Any], kind: Kind) -> Params:
    """Return the parameters with the values of a policy that have an effect on this kind."""
    for param in _PARAMS[strategy][0]:
        if param.name in values and kind in param.kinds:
            params = _with(params, param.path, _field_value(param, values[param.name]))
    return params


def _field_value(param: Param, value: float | str) -> float | None:
    """Convert a value to the unit of its field; None for `auto` and `off`."""
    return None if isinstance(value, str) else value / param.scale if param.scale > 1 else value


def _with(params: Any, path: tuple[str, ...], value: float | None) -> Any:
    inner = value if len(path) == 1 else _with(getattr(params, path[0]), path[1:], value)
    return replace(params, **{path[0]: inner})
