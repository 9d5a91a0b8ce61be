"""What is tried on a program, in which order, and what is not tried at all."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import msgspec

from hotloop.model.ceilings import Prediction
from hotloop.model.goal import Aim
from hotloop.model.observation import Observation
from hotloop.model.optimization import NOT_ASKED, Candidate, Numerics, Refusal
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.registry import get
from hotloop.tune.design.experience import Outcome, factor
from hotloop.tune.design.for_goal import unoffered

HOPELESS = 0.5
"""What is expected of a candidate below which it is not tried unasked: bf16 where the processor emulates it took a
tenth of the time that was there for all knobs, in every session."""
_LEVELS = (Numerics.EXACT, Numerics.TOLERANCE, Numerics.SEMANTIC)


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """What the user allows.

    Attributes:
        allow: the furthest numerics class that may be tried.
        only: names to try; empty: all.
        skip: names not to try.
        aim: what the plan is for.
    """

    allow: Numerics = Numerics.TOLERANCE
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    aim: Aim = Aim()

    def check(self) -> None:
        """Demand that every name is an optimization's.

        Raises:
            HotloopError: one is not.
        """
        for name in (*self.only, *self.skip):
            get(name)


def propose(
    observation: Observation,
    optimizations: Sequence[Optimization],
    wishes: Wishes,
    outcomes: Mapping[str, Outcome] = MappingProxyType({}),
) -> tuple[list[Candidate], list[Refusal]]:
    """Return the candidates, the most promising first, and what does not apply, with its reason.

    Args:
        observation: of the program; what it predicts goes before what is expected of programs in general.
        optimizations: the catalogue.
        wishes: what the user allows.
        outcomes: of earlier sessions, for the order.
    """
    candidates: list[Candidate] = []
    refused: list[Refusal] = []
    for optimization in optimizations:
        reason = _unwanted(optimization, wishes)
        if reason is not None:
            refused.append(Refusal(optimization.name, reason))
            continue
        try:
            found = optimization.candidates(observation)
        except DoesNotApply as why:
            refused.append(Refusal(optimization.name, f"does not apply: {why}"))
            continue
        for candidate in found:
            wanted = optimization.name in wishes.only or _costs_time(candidate, wishes)
            if candidate.prior < HOPELESS and not wanted:
                hint = f"to measure it anyway: --only {optimization.name}"
                refused.append(Refusal(candidate.label, f"far slower on a machine like this one; {hint}"))
            else:
                candidates.append(candidate)
    return promising_first(
        candidates,
        observation.predictions,
        learned=lambda one: factor(outcomes, one, observation.program.device),
    ), refused


def _costs_time(candidate: Candidate, wishes: Wishes) -> bool:
    """Whether a candidate is slow for the memory that it saves, and memory counts."""
    return candidate.saves_memory and wishes.aim.counts_memory


TRIAL_S = 25.0
"""Of a screening pair: two starts of about 5 s and 16 blocks of 0.8 s; what is compiled comes on top."""


def promising_first(
    candidates: Sequence[Candidate],
    predictions: Sequence[Prediction] = (),
    learned: Callable[[Candidate], float] = lambda _: 1.0,
) -> list[Candidate]:
    """Return the candidates with their predictions, the largest expected log gain for each second of a trial first.

    Args:
        candidates: in any order.
        predictions: of what-if experiments; they replace what is expected without them.
        learned: what to multiply an expected gain with, from earlier sessions.
    """
    known = {(one.name, msgspec.json.encode(one.params, order="sorted")): one for one in predictions}
    told = []
    for candidate in candidates:
        found = known.get((candidate.name, msgspec.json.encode(candidate.params, order="sorted")))
        if found is not None:
            candidate = msgspec.structs.replace(  # noqa: PLW2901
                candidate, predicted=found.ratio, one_off_s=found.one_off_s
            )
        told.append(candidate)
    return sorted(told, key=lambda one: _gain_per_second(one, learned(one)), reverse=True)


def _gain_per_second(candidate: Candidate, learned: float) -> float:
    expected = candidate.predicted.ratio if candidate.predicted else candidate.prior * learned
    return math.log(max(expected, 1e-3)) / (TRIAL_S + (candidate.one_off_s or 0.0))


def conflicts(optimizations: Sequence[Optimization], *, on_cpu: bool) -> dict[str, frozenset[str]]:
    """Return what each optimization is not tried together with, whichever of the two says so."""
    said = {one.name: one.conflicts | (one.moot_on_cpu if on_cpu else frozenset()) for one in optimizations}
    return {
        name: names | {other for other, theirs in said.items() if name in theirs}
        for name, names in said.items()
    }


def _unwanted(optimization: Optimization, wishes: Wishes) -> str | None:
    if wishes.only and optimization.name not in wishes.only:
        return NOT_ASKED
    if optimization.name in wishes.skip:
        return "left out (--skip)"
    if _LEVELS.index(optimization.numerics) > _LEVELS.index(wishes.allow):
        level = optimization.numerics.value
        return f"changes the training ({level}); allow it with --allow {level}"
    return unoffered(optimization, wishes.aim, wishes.only)
