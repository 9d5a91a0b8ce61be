"""What takes the place of something that did not learn the same: a gentler form of it.

Half precision made a DCGAN 1.5 times as fast, and its discriminator's loss 100: the sigmoid before that loss has to
stay in full precision.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from hotloop.model.optimization import Candidate, Refusal
from hotloop.model.tuning import Failure, Trial
from hotloop.tune.verdict.decision import NO_EFFECT, PARITY


def stand_ins(
    candidates: Sequence[Candidate],
    gone: Collection[Refusal],
    trials: Sequence[Trial],
    stands_in_for: Mapping[str, frozenset[str]],
) -> list[Candidate]:
    """Return what is worth a proof in place of what parity refused.

    Args:
        candidates: all that there are.
        gone: what was refused, for whatever reason.
        trials: so far; one beside what is gone now has not told if it is faster than the program as it was.
        stands_in_for: names that each optimization may take the place of.
    """
    labels = {refusal.name for refusal in gone if refusal.reason.startswith(PARITY)}
    names = {one.name for one in candidates if one.label in labels}
    latest = {trial.candidate.label: trial for trial in trials}
    return [
        one
        for one in candidates
        if stands_in_for.get(one.name, frozenset()) & names
        and (one.label not in latest or _is_open(latest[one.label], names))
    ]


def _is_open(trial: Trial, names: Collection[str]) -> bool:
    """Whether a trial has said nothing against a candidate but that it was no faster than what is gone."""
    return (
        not isinstance(trial.outcome, Failure)
        and not trial.decision.startswith((NO_EFFECT, PARITY))
        and any(step.name in names for step in trial.incumbent)
    )
