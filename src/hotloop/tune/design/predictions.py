"""Predictions before the trials: one more run of the program, worth its time only where there is a budget for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from hotloop.launch.isolation.decide import Isolation
from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate
from hotloop.tune.design.candidates import promising_first
from hotloop.tune.session.ledger import Ledger
from hotloop.whatif.measure import WhatIf, measure

SHARE = 0.1
"""Of the budget, at most: about what two or three trials of a ten-minute budget take."""
MIN_S = 30.0
"""Less is not enough for a start and a handful of candidates; budgets below five minutes go to trials."""
MIN_CANDIDATES = 2
"""One candidate needs no order."""


def predicted(
    observation: Observation,
    candidates: Sequence[Candidate],
    argv: Sequence[str],
    isolation: Isolation,
    ledger: Ledger,
    say: Callable[[str], None],
    stdin: Path | None,
) -> list[Candidate]:
    """Return the candidates with what is expected of them, the most promising first."""
    limit_s = SHARE * ledger.budget.seconds
    if limit_s < MIN_S or len(candidates) < MIN_CANDIDATES:
        return list(candidates)
    told = ledger.once(
        "whatif", WhatIf, lambda: measure(observation, candidates, argv, isolation, limit_s, say, stdin)
    )
    return promising_first(candidates, told.predictions)
