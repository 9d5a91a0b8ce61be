"""What takes the place of something that did not learn the same: a gentler form of it.

Half precision that a loss cannot bear everywhere is gentler with some modules in full precision, and slower: where the
harsher form learns the same, or is no faster, the gentler one is not worth a trial.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hotloop.model.optimization import Candidate, Refusal


def substitutes(
    candidates: Sequence[Candidate], gone: Candidate, stands_in_for: Mapping[str, frozenset[str]]
) -> list[Candidate]:
    """Return what may take the place of a candidate that failed the parity check.

    Args:
        candidates: all that there are.
        gone: what failed it.
        stands_in_for: names that each optimization may take the place of.
    """
    return [one for one in candidates if gone.name in stands_in_for.get(one.name, frozenset())]


def waiting(candidates: Sequence[Candidate], stands_in_for: Mapping[str, frozenset[str]]) -> list[Refusal]:
    """Return what is not tried by itself, because what it may take the place of is a candidate."""
    names = {one.name for one in candidates}
    others = {one.label: stands_in_for.get(one.name, frozenset()) & names for one in candidates}
    return [
        Refusal(label, f"tried only if {' or '.join(sorted(found))} fails the parity check")
        for label, found in others.items()
        if found
    ]
