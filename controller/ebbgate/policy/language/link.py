# SPDX-License-Identifier: GPL-2.0-only
"""Resolves includes and schedules of documents, and finds cycles. Pure.

A document takes precedence over what it includes: its limits, objectives and strategies replace
those of the included ones key by key, and its rules come first. In the same way an overlay takes
precedence over the document whose schedule uses it, except for limits: those of the document apply.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ebbgate.policy.language.diagnostic import Diagnostic, Position, nearest
from ebbgate.policy.language.document import Entry, PolicyDocument, RuleText
from ebbgate.policy.language.parse import parse

_Limits = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Linked:
    """Either documents with all references resolved, or problems."""

    documents: tuple[PolicyDocument, ...]
    problems: tuple[Diagnostic, ...] = ()


class _Wrong(Exception):
    """A reference to an unknown policy, or a cycle."""

    def __init__(self, problem: Diagnostic) -> None:
        super().__init__(str(problem))
        self.problem = problem


def load(
    texts: Mapping[str, str | bytes], shipped: Iterable[PolicyDocument] | None = None
) -> Linked:
    """Read and link the files of a folder, given by name.

    Without `shipped` the files are the shipped ones themselves.
    """
    parsed = [parse(text, file) for file, text in texts.items()]
    problems = tuple(problem for each in parsed for problem in each.problems)
    documents = [each.document for each in parsed if each.document is not None]
    linked = link(documents, documents if shipped is None else shipped)
    return Linked((), (*problems, *linked.problems)) if problems else linked


def link(
    documents: Sequence[PolicyDocument],
    shipped: Iterable[PolicyDocument],
    neighbours: Iterable[PolicyDocument] = (),
) -> Linked:
    """Resolve the includes (of shipped policies) and overlays (of any) of documents of a folder.

    `neighbours`: more of the folder, which may be used but are not linked.
    """
    problems = list(_twice(documents))
    library = {each.name: each for each in shipped}
    local = {**library, **{each.name: each for each in (*neighbours, *documents)}}
    linked = []
    for document in documents:
        try:
            linked.append(_with_overlays(_included(document, library, ()), library, local))
        except _Wrong as wrong:
            problems.append(wrong.problem)
    return Linked((), tuple(problems)) if problems else Linked(tuple(linked))


def overlaid(base: PolicyDocument, overlay: PolicyDocument) -> PolicyDocument:
    """Return the document with an overlay applied."""
    return replace(
        base,
        limits=_limits(base.limits, overlay.limits),
        objectives={**base.objectives, **overlay.objectives},
        strategies=base.strategies if overlay.strategies is None else overlay.strategies,
        rules=_rules(overlay.rules, base.rules),
        backing_scheduler=overlay.backing_scheduler or base.backing_scheduler,
    )


def _twice(documents: Sequence[PolicyDocument]) -> Iterable[Diagnostic]:
    first: dict[str, PolicyDocument] = {}
    for document in documents:
        other = first.setdefault(document.name, document)
        if other is not document:
            yield _same_name(document, other)


def names_taken(
    documents: Iterable[PolicyDocument], neighbours: Iterable[PolicyDocument]
) -> Iterator[Diagnostic]:
    """Yield an error for each document whose name another one of the folder has."""
    others = {each.name: each for each in neighbours}
    for document in documents:
        if document.name in others:
            yield _same_name(document, others[document.name])


def _same_name(document: PolicyDocument, other: PolicyDocument) -> Diagnostic:
    what = f"{other.file} has the name {document.name!r}, too"
    return Diagnostic(document.file, document.name_position, "name", what, "change one of them")


def _included(
    document: PolicyDocument, library: Mapping[str, PolicyDocument], chain: tuple[str, ...]
) -> PolicyDocument:
    """Return the document with all that it includes; `chain`: the names that led here."""
    chain = (*chain, document.name)
    for reference in document.includes:
        found = library.get(reference.text)
        if found is None:
            raise _unknown(document, "include", reference.text, reference.position, library)
        if found.name in chain:
            what = f"includes itself: {' -> '.join((*chain, found.name))}"
            raise _Wrong(
                Diagnostic(document.file, reference.position, "include", what, "remove one of them")
            )
        base = _included(found, library, chain)
        document = replace(
            document,
            limits=_limits(document.limits, base.limits),
            objectives={**base.objectives, **document.objectives},
            strategies=base.strategies if document.strategies is None else document.strategies,
            rules=_rules(document.rules, base.rules),
            backing_scheduler=document.backing_scheduler or base.backing_scheduler,
        )
    return replace(document, includes=())


def _with_overlays(
    document: PolicyDocument,
    library: Mapping[str, PolicyDocument],
    local: Mapping[str, PolicyDocument],
) -> PolicyDocument:
    def with_overlay(entry: Entry) -> Entry:
        found = local.get(entry.use.text)
        if found is None:
            raise _unknown(document, "schedule.use", entry.use.text, entry.use.position, local)
        if found.name == document.name:
            what = f"uses itself: {document.name} -> {found.name}"
            raise _Wrong(
                Diagnostic(
                    document.file, entry.use.position, "schedule.use", what, "use another policy"
                )
            )
        # The schedule of an overlay is ignored: the overlay applies for this time only.
        return replace(entry, overlay=replace(_included(found, library, ()), schedule=()))

    return replace(document, schedule=tuple(with_overlay(each) for each in document.schedule))


def _limits(winning: _Limits, others: _Limits) -> _Limits:
    """Join both bound by bound; of two that contradict each other keep the first."""
    joined = {**others, **winning}
    for name in winning.keys() & others.keys():
        both = {**others[name], **winning[name]}
        if both.get("min", 0) <= both.get("max", math.inf):
            joined[name] = both
    return joined


def _rules(winning: tuple[RuleText, ...], others: tuple[RuleText, ...]) -> tuple[RuleText, ...]:
    """Join both; of two rules with the same name keep the first."""
    names = {rule.name for rule in winning}
    return (*winning, *(rule for rule in others if rule.name not in names))


def _unknown(
    document: PolicyDocument, key: str, name: str, position: Position, known: Mapping[str, object]
) -> _Wrong:
    what = f"unknown policy {name!r}"
    listed = f"known policies: {', '.join(known)}" if known else ""
    return _Wrong(Diagnostic(document.file, position, key, what, listed, nearest(name, known)))
