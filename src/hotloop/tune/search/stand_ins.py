"""What takes the place of something that did not learn the same: a gentler form of it.

Half precision that a loss cannot bear everywhere is gentler with some modules in full precision, and slower: where the
harsher form learns the same, or is no faster, the gentler one is not worth a trial.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from hotloop.model.optimization import Candidate, Refusal
from hotloop.tune.verdict.decision import PARITY


def stand_ins(
    candidates: Sequence[Candidate],
    gone: Collection[Refusal],
    stands_in_for: Mapping[str, frozenset[str]],
) -> list[Candidate]:
    """Return what is worth a proof in place of what parity refused.

    Args:
        candidates: all that there are.
        gone: what was refused, for whatever reason.
        stands_in_for: names that each optimization may take the place of.
    """
    labels = {refusal.name for refusal in gone if refusal.reason.startswith(PARITY)}
    names = {one.name for one in candidates if one.label in labels}
    return [one for one in candidates if stands_in_for.get(one.name, frozenset()) & names]


def waiting(candidates: Sequence[Candidate], stands_in_for: Mapping[str, frozenset[str]]) -> list[Refusal]:
    """Return what is not tried by itself, because what it may take the place of is a candidate."""
    names = {one.name for one in candidates}
    others = {one.label: stands_in_for.get(one.name, frozenset()) & names for one in candidates}
    return [
        Refusal(label, f"tried only in place of {' or '.join(sorted(found))}, where that fails parity")
        for label, found in others.items()
        if found
    ]
