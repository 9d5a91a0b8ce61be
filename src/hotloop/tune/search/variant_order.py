"""The order in which variants of the same optimizations are tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hotloop.model.optimization import Candidate


def in_turns(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the first candidate of every name, then the second ones: what is different is worth more than variants."""
    seen: Counter[str] = Counter()
    turns = []
    for candidate in candidates:
        turns.append(seen[candidate.name])
        seen[candidate.name] += 1
    return [
        candidate for _, candidate in sorted(zip(turns, candidates, strict=True), key=lambda pair: pair[0])
    ]
