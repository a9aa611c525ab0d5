# SPDX-License-Identifier: GPL-2.0-only
"""What the process says that reads a layout is checked before it is used."""

from __future__ import annotations

from typing import Any

import pytest

from ebbgate.errors import Unavailable
from ebbgate.layout.survey_answer import SurveyAnswer


def line(event: str, **fields: Any) -> dict[str, Any]:
    return {"event": event, **fields}


END = line("surveyed", files=1, bytes=4096, left_out={}, error="", changed=False)


@pytest.mark.parametrize(
    "lines",
    [
        [{}],
        [line("opened")],
        [line("groups", names=5)],
        [line("groups", names=[7])],
        [line("groups", names=["a\nb"])],
        [line("groups", names=["x" * 257])],
        [line("groups", names=["a"] * 10_001)],
        [line("runs", runs=[[0, 1, 0]])],
        [line("groups", names=["a"]), line("runs", runs=[[0, 1]])],
        [line("groups", names=["a"]), line("runs", runs=[[0, True, 0]])],
        [line("groups", names=["a"]), line("runs", runs=[[0, 0, 0]])],
        [line("groups", names=["a"]), line("runs", runs=[[0, 1.5, 0]])],
        [line("groups", names=["a"]), line("runs", runs=[[-1, 1, 0]])],
        [line("groups", names=["a"]), line("runs", runs=[[0, 1025, 0]])],
        [line("groups", names=["a"]), line("runs", runs=[[0, 2, 0], [1, 3, 0]])],
        [line("groups", names=["a"]), line("runs", runs=[[4, 5, 0], [1, 3, 0]])],
        [line("groups", names=["a"]), line("runs", runs=[[0, 1, 1]])],
        [END | {"files": -1}],
        [END | {"files": "1"}],
        [END | {"bytes": 1 << 62}],
        [END | {"left_out": []}],
        [END | {"left_out": {"a\x1b": 1}}],
        [END | {"left_out": {str(n): 1 for n in range(17)}}],
        [END | {"error": None}],
        [END | {"error": "x" * 301}],
    ],
)
def test_an_answer_that_is_wrong_is_refused(lines: list[dict[str, Any]]) -> None:
    answer = SurveyAnswer(1024)
    with pytest.raises(Unavailable, match="cannot be used"):
        for each in lines:
            answer.take(each)


def test_too_many_runs_are_refused() -> None:
    answer = SurveyAnswer(1 << 20)
    answer.take(line("groups", names=["a"]))
    with pytest.raises(Unavailable, match="cannot be used"):
        answer.take(line("runs", runs=[[n, n + 1, 0] for n in range((1 << 15) + 1)]))


def test_a_failure_of_the_process_is_reported_without_control_characters() -> None:
    with pytest.raises(Unavailable, match="a\\?b"):
        SurveyAnswer(1).take(line("failed", text="a\x1bb"))
