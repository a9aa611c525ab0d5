# SPDX-License-Identifier: GPL-2.0-only
"""The drawing of the packages in controller/README.md follows the imports."""

from __future__ import annotations

from tests import module_graph


def test_an_arrow_that_follows_from_others_is_left_out() -> None:
    graph = {"cli": {"store", "model"}, "store": {"model"}, "model": set[str]()}
    assert module_graph.reduced(graph) == {"cli": {"store"}, "store": {"model"}, "model": set()}


def test_the_drawing_in_the_readme_is_current() -> None:
    text = module_graph.README.read_text()
    assert module_graph.BEGIN in text
    block = module_graph.mermaid(module_graph.reduced(module_graph.packages()))
    assert text == module_graph.drawn(text, block), "run: python -m tests.module_graph --write"
