"""The original program's loss curves, against which every candidate's is held."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from functools import lru_cache
from statistics import median

import msgspec

from hotloop.model.learned import Learned, TrainingInvariants
from hotloop.model.optimization import Candidate, Numerics
from hotloop.model.tuning import ParityEvidence
from hotloop.stats.first_steps import EARLY_STEPS
from hotloop.stats.parity import (
    ENOUGH_DRAWS,
    MIN_STEPS,
    TELLING_DRAWS,
    UNDECIDED,
    Parity,
    check_parity,
    parts,
)
from hotloop.tune.verdict.first_gradients import ENOUGH_AGREEING, begins_alike, num_agreeing, num_following
from hotloop.tune.verdict.held_invariants import broken
from hotloop.tune.verdict.other_batch_size import other_batch_size
from hotloop.tune.verdict.reference_outputs import ReferenceOutputs

NO_LOSSES = "the original's own losses are NaN or infinite"
_check_parity = lru_cache(maxsize=32)(check_parity)
"""A session asks for the same runs at every look. Curves are long: few are kept."""


class ReferenceLosses(msgspec.Struct, frozen=True, kw_only=True):
    """Losses of the original, in the order of the backward calls."""

    originals: tuple[tuple[float, ...], ...]
    """Of every run from the same seed: every arm without changes is one."""
    perturbed: tuple[tuple[float, ...], ...] = ()
    """With rounding noise on its parameters and other random choices, each time others."""
    sites: tuple[int, ...] = ()
    """The place of the backward call of each loss of the first original; empty: there is one place."""
    invariants: tuple[TrainingInvariants, ...] = ()
    """Of every run from the same seed."""
    perturbed_invariants: tuple[TrainingInvariants, ...] = ()
    """With rounding noise on its parameters and other random choices."""
    outputs: ReferenceOutputs = ReferenceOutputs()
    """Where nothing is trained, there are no losses, and these are held against a plan's."""

    def check(self, run: Learned, plan: Sequence[Candidate]) -> ParityEvidence:
        """Return whether a run with a plan learns (or answers) the same, by the least strict class of its steps."""
        if any(candidate.samples != 1 for candidate in plan):
            return other_batch_size(plan)
        loose = any(candidate.numerics is not Numerics.EXACT for candidate in plan)
        numerics = Numerics.TOLERANCE if loose else Numerics.EXACT
        if run.outputs and self.outputs.originals and not run.losses:
            return self.outputs.judge(run.outputs, numerics=numerics)
        changed = (
            broken(self.invariants, run.invariants, self.perturbed_invariants)
            if run.invariants is not None
            else None
        )
        if changed is not None:
            return _breaks(changed, min(len(run.losses), max(map(len, self.originals), default=0)))
        touches_numbers = any(candidate.touches_numbers for candidate in plan)
        alike = run.invariants is not None and begins_alike(self.invariants, run.invariants)
        seen = self.judge(run.losses, numerics=numerics, touches_numbers=touches_numbers, begins_alike=alike)
        if seen.statistic is None or run.invariants is None or not self.invariants:
            return seen
        if seen.decided and not seen.passed and self._needs_more_runs(len(run.losses), run.invariants, plan):
            evidence = f"{seen.evidence}{UNDECIDED}; the gradients of the first steps are the original's"
            return msgspec.structs.replace(seen, decided=False, evidence=evidence)
        num = 0 if seen.decided else self._num_alike(run.invariants, plan)
        if num >= ENOUGH_AGREEING:
            told = seen.evidence.removesuffix(UNDECIDED)
            same = f"{told}; the gradients of the first {num} steps follow the original's; invariants hold"
            return msgspec.structs.replace(seen, passed=True, decided=True, evidence=same)
        return msgspec.structs.replace(seen, evidence=f"{seen.evidence}; invariants hold")

    def _needs_more_runs(self, num_losses: int, seen: TrainingInvariants, plan: Sequence[Candidate]) -> bool:
        """Return whether a change that is exact but for rounding departs too far for the few runs that are known alone.

        Rewards of reinforcement learning wander for as long as the run is: one thread, with the gradients of fifteen
        steps equal, was twice as far away as one other run let expect, and was never looked at again.
        """
        if any(one.numerics is not Numerics.EXACT for one in plan):
            return False
        num = min(num_losses, max(map(len, self._whole), default=0))
        few = sum(len(other) >= num for other in self._whole) < TELLING_DRAWS
        wanted = few and self.wants_perturbed()
        return wanted and num_agreeing(self.invariants, seen) >= ENOUGH_AGREEING

    def _num_alike(self, seen: TrainingInvariants, plan: Sequence[Candidate]) -> int:
        """Return of how many first steps the gradients show that a change leaves training as it was."""
        classes = {candidate.numerics for candidate in plan}
        if Numerics.SEMANTIC in classes:
            return 0
        # A change that is exact but for rounding gives the same gradients of the same weights and batches.
        same = num_agreeing(self.invariants, seen) if classes <= {Numerics.EXACT} else 0
        # One that rounds otherwise keeps to the original's course for as long as rounding has not grown.
        return max(same, num_following(self.invariants, seen, self.perturbed_invariants))

    def beside(self, run: Learned) -> ReferenceLosses:
        """Return what a run with one more change, which cannot touch a number, is held to: the run without it.

        What else is on in both may part from the original by rounding; a wait policy was refused for an optimizer's.
        It is repeated as far away as the original was: where processes of a sampler race for the order of batches, huge
        pages were refused for that.
        """
        if not run.losses or not self.originals:
            return self
        first, *others = self.originals
        repeats = tuple(_as_far_away(run.losses, first, other) for other in others)
        return msgspec.structs.replace(
            self,
            originals=(run.losses, *repeats),
            invariants=(run.invariants,) if run.invariants is not None else (),
        )

    def judge(
        self,
        losses: Sequence[float],
        *,
        numerics: Numerics,
        touches_numbers: bool = True,
        begins_alike: bool = False,
    ) -> ParityEvidence:
        """Return whether losses are the original's; each place of a backward call has a curve of its own."""
        original = self.originals[0] if self.originals else ()
        num = min(len(original), len(losses))
        needs_proof = numerics is not Numerics.EXACT and touches_numbers
        curves = self._curves(num)
        both = zip(original, losses, strict=False)
        if not any(math.isfinite(before) and not math.isfinite(after) for before, after in both):
            if num and not _num_finite(original):
                return _not_compared(needs_proof, 0, NO_LOSSES)
            if num < MIN_STEPS:
                return _not_compared(needs_proof, num)
            if needs_proof and self.perturbed and not self._whole:
                return _not_compared(needs_proof, max(map(len, self.perturbed)))
            curves = [places for places in curves if _num_finite(_at(original, places)) >= MIN_STEPS]
            if not curves:
                return _not_compared(needs_proof, 0, NO_LOSSES)
        found = [
            _check_parity(
                tuple(_at(run, places) for run in self.originals),
                tuple(_at(run, places) for run in self._whole),
                _at(losses, places),
                numerics=numerics,
                touches_numbers=touches_numbers,
                departed=_departed(original, losses, places, curves),
                begins_alike=begins_alike,
            )
            for places in curves
        ]
        return ParityEvidence(**msgspec.structs.asdict(max(found, key=_departure)))

    def wants_perturbed(self, *, unsettled: bool = False) -> bool:
        """Return whether one more perturbed run would tell how far runs part; where they do not, a whole one is enough.

        Args:
            unsettled: a plan departs further than that one, and not far enough: it may have kept close by luck. A
                ResNet's did to 0.3%, others to 4%.
        """
        if not self.originals or len(self._whole) >= ENOUGH_DRAWS:
            return False
        if not self._whole or unsettled:
            return bool(self.originals[0])
        num = min(len(run) for run in (self.originals[0], *self._whole))
        return any(
            parts(_at(self.originals[0], places), [_at(run, places) for run in self._whole])
            for places in self._curves(num)
        )

    @property
    def _whole(self) -> list[tuple[float, ...]]:
        """The perturbed runs that are long enough to be compared with."""
        return [run for run in self.perturbed if len(run) >= MIN_STEPS]

    def _curves(self, num: int) -> list[list[int]]:
        """The indices of each curve that is long enough; all losses as one where none is."""
        sites = self.sites[:num] if len(self.sites) >= num else (0,) * num
        curves = [[at for at in range(num) if sites[at] == site] for site in dict.fromkeys(sites)]
        long = [curve for curve in curves if len(curve) >= MIN_STEPS]
        return long or [list(range(num))]


def _as_far_away(run: Sequence[float], first: Sequence[float], other: Sequence[float]) -> tuple[float, ...]:
    """Return a run moved as far, relatively, as one of two equal runs is from the other."""
    together = zip(run, first, other, strict=False)
    return tuple(mine * after / before if before else mine for mine, before, after in together)


def _at(run: Sequence[float], places: Sequence[int]) -> tuple[float, ...]:
    return tuple(run[at] for at in places if at < len(run))


def _departed(
    original: Sequence[float], losses: Sequence[float], places: Sequence[int], curves: Sequence[Sequence[int]]
) -> tuple[float, ...]:
    """Return how far the other curves had departed before each loss of one; empty: there is one curve."""
    apart = {
        at: abs(losses[at] - original[at]) / max(abs(original[at]), size)
        for others in curves
        if others is not places
        for size in [max(median(abs(original[at]) for at in others[:EARLY_STEPS]), sys.float_info.min)]
        for at in others
        if math.isfinite(losses[at]) and math.isfinite(original[at])
    }
    if not apart:
        return ()
    own, found, furthest = set(places), [], 0.0
    for at in range(places[-1] + 1):
        if at in own:
            found.append(furthest)
        furthest = max(furthest, apart.get(at, 0.0))
    return tuple(found)


def _departure(parity: Parity) -> tuple[bool, bool, float]:
    """What failed goes first, then what is not decided, then what came closest."""
    ratio = parity.statistic / parity.limit if parity.statistic is not None and parity.limit else math.inf
    return not parity.passed and parity.decided, not parity.passed, ratio


def _breaks(what: str, num: int) -> ParityEvidence:
    """However close the losses are, it is not the same training."""
    return ParityEvidence(
        passed=False, statistic=None, limit=None, num_steps=num, method="invariants", evidence=what
    )


def _num_finite(losses: Sequence[float]) -> int:
    return sum(map(math.isfinite, losses))


def _not_compared(needs_proof: bool, num: int, evidence: str = "") -> ParityEvidence:
    """Without a curve nothing proves that reduced precision learns the same; exact changes need no proof."""
    seen = f"{num} losses were seen, {MIN_STEPS} are needed to compare" if num else "no loss was seen"
    why = "" if num else ": backward was never called on a scalar"
    return ParityEvidence(
        passed=not needs_proof,
        decided=not needs_proof,
        statistic=None,
        limit=None,
        num_steps=num,
        method="not measured",
        evidence=evidence or seen + why,
    )
