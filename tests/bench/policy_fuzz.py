# SPDX-License-Identifier: GPL-2.0-only
"""`policy-fuzz`: random and hostile policy files; needs no lab. I/O: reads policies/.

Each is a shipped policy, or the example of the reference, with a few changes, or plain rubbish
(tests/policy_texts.py). What is accepted is compared with the JSON Schema, which knows every key.
"""

from __future__ import annotations

from random import Random

from ebbgate.policy.language.parse import parse
from tests.bench.context import Context, Scenario
from tests.bench.report import Report
from tests.policy_texts import EXAMPLE, SHIPPED, hostile, verdict

FILES = 10_000
_SAID = {"accepted": "accepted_wrongly", "neither": "accepted_wrongly", "no": "without_place"}
"""By the first word of the verdict."""


def run(context: Context) -> Report:
    """One arm; a repetition takes other seeds."""
    texts = (EXAMPLE, *(path.read_text() for path in SHIPPED))
    runs = []
    for repetition in range(context.repetitions):
        first = (context.seed + repetition) * FILES
        counts = dict.fromkeys(("crashed", "accepted_wrongly", "without_place", "accepted"), 0.0)
        for number in range(FILES):
            source = hostile(Random(first + number), texts)
            counts["accepted"] += _count(context, counts, source)
            if number % 1000 == 0:
                context.say(f"{number} of {FILES} files, {counts['crashed']:.0f} crashes")
        counts["files"] = float(FILES)
        runs.append(counts)
    worst = {name: max(each[name] for each in runs) for name in runs[0]}
    goals = {name: "== 0" for name in ("crashed", "accepted_wrongly", "without_place")}
    goals["files"] = f">= {FILES}"
    ratios = {name: worst[name] for name in goals}
    return Report("policy-fuzz", {"fuzz": runs}, ratios, goals)


def _count(context: Context, counts: dict[str, float], source: bytes) -> bool:
    """Take one file into the counts; was it accepted?"""
    try:
        said = verdict(source)
        accepted = parse(source, "fuzz.yaml").document is not None
    # A crash is what is looked for, whatever its kind.
    except Exception as error:
        context.say(f"crash: {type(error).__name__}: {error}: {source!r}")
        counts["crashed"] += 1
        return False
    if said:
        context.say(f"{said}: {source!r}")
        counts[_SAID[said.split(" ")[0]]] += 1
    return accepted


SCENARIO = Scenario(
    "policy-fuzz",
    "10,000 hostile policy files: no crash, no unknown key accepted, every error located",
    1.5,
    run,
)
