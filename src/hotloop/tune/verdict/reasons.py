"""What an arm's record says of what was on in it."""

from __future__ import annotations

from collections.abc import Sequence

from hotloop.launch.log_tail import last_words
from hotloop.model.optimization import Candidate, Effect, Numerics
from hotloop.model.tuning import Failure, FailureKind
from hotloop.tune.executor import ArmRecord

ACCEPTED = "accepted"
NO_DIFFERENCE = "no difference"
SLOWER = "slower"
PARITY = "parity"
"""How the refusal of what does not learn the same begins."""
NO_EFFECT = "no effect"
ONE_OFF_NOISE_S = 0.5
"""Starts of the same program differ by about this much on a quiet machine."""


def one_off_s(before: ArmRecord, after: ArmRecord) -> float | None:
    """Return what start-up and first steps cost more; None where it was not measured or is noise."""
    if before.first_steps_s is None or after.first_steps_s is None:
        return None
    more = after.first_steps_s - before.first_steps_s
    return more if more >= ONE_OFF_NOISE_S else None


def not_proven(effects: Sequence[Effect], candidate: Candidate) -> str | None:
    """Return why the candidate cannot be said to have been on, or None where it was."""
    seen = [effect for effect in effects if effect.name == candidate.name]
    if not seen:
        return f"{NO_EFFECT}: it was not seen to act in the training process"
    if not seen[0].on:
        return f"{NO_EFFECT}: {seen[0].evidence}"
    return None


def failure_reason(failure: Failure) -> str:
    """Return how an arm failed, with its last words."""
    if failure.kind is FailureKind.LATE:
        return f"not tried: {failure.message} (--budget)"
    last = last_words(failure.log_end)
    tail = f": {last}" if last and failure.kind is not FailureKind.ENDED else ""
    return f"failed ({failure.kind.value}): {failure.message}{tail}"


def blamed(added: Sequence[Candidate]) -> Candidate:
    """Return the step that goes first of several: the last one that changes the numbers most, else the last."""
    loose = [step for step in added if step.numerics is not Numerics.EXACT]
    touching = [step for step in added if step.touches_numbers]
    return (loose or touching or list(added))[-1]
