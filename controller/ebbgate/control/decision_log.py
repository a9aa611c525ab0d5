# SPDX-License-Identifier: GPL-2.0-only
"""One log line for each strategy that takes another stand. I/O: the log."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from ebbgate.model.decision import Decision

_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class DecisionLog:
    """What was logged of a volume last, by strategy: an unchanged stand is not repeated."""

    stands: dict[str, str] = field(default_factory=dict)

    def log(self, volume: str, decision: Decision, suffix: str) -> None:
        """`suffix` follows each line, e.g. that nothing is applied."""
        for proposal in decision.proposals:
            stand = proposal.reason.split(":", 1)[0] + suffix
            if self.stands.get(proposal.strategy) != stand:
                self.stands[proposal.strategy] = stand
                _LOG.info("%s: %s: %s%s", volume, proposal.strategy, proposal.reason, suffix)
