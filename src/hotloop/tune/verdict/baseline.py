"""What every trial is judged by: gathered from the originals in all sets, so that nothing is run for it alone."""

from __future__ import annotations

import math
from statistics import median

import msgspec

from hotloop.stats.floor import Spread, aa_floor, pair_spread
from hotloop.stats.pairs import MIN_BLOCKS
from hotloop.tune.executor import ArmRecord, SetOrder, SetRecord
from hotloop.tune.verdict.reference_losses import ReferenceLosses
from hotloop.tune.verdict.reference_outputs import ReferenceOutputs


class NoiseBaseline(msgspec.Struct, frozen=True, kw_only=True):
    """What the program against itself gave."""

    floor: float
    spread: Spread
    references: ReferenceLosses


class Originals:
    """Collects what the program as it is did in every set."""

    def __init__(self) -> None:
        self._pairs: list[tuple[float, ...]] = []
        self._curves: list[ArmRecord] = []
        self._perturbed: list[ArmRecord] = []
        self._baseline: NoiseBaseline | None = None
        self._steps_s: list[float] = []
        """The program's typical step in each set whose threads waited as the user's do, with nobody else at work."""

    @property
    def measured(self) -> bool:
        """Whether the program was run against itself."""
        return bool(self._pairs)

    @property
    def num_perturbed(self) -> int:
        """How often it was run with rounding noise."""
        return len(self._perturbed)

    @property
    def range_s(self) -> tuple[float, float]:
        """The shortest and the longest typical step of the program as it is, in seconds, from set to set; 0: none."""
        return min(self._steps_s, default=0.0), max(self._steps_s, default=0.0)

    def wants_perturbed(self, *, unsettled: bool = False) -> bool:
        """Return whether one more run with rounding noise would tell how far runs part.

        Args:
            unsettled: of a plan nothing is decided with the runs there are.
        """
        return not self._perturbed or self._references().wants_perturbed(unsettled=unsettled)

    def add(self, order: SetOrder, record: SetRecord) -> None:
        """Take the originals of a set: any two of them are an A/A pair, their losses are references."""
        self._baseline = None
        alive = [at for at, plan in enumerate(order.plans) if not plan and record.arm(at) is not None]
        pairs = [record.log_ratios((alive[0],), other) for other in alive[1:]]
        self._pairs += [pair for pair in pairs if len(pair) >= MIN_BLOCKS]
        steps_s = [times[alive[0]] for times in record.rounds if alive and math.isfinite(times[alive[0]])]
        if steps_s and not order.passive and not record.aside:
            self._steps_s.append(median(steps_s))
        for at in alive:
            arm = record.arm(at)
            curves = self._perturbed if at in order.perturbed else self._curves
            if arm is not None and (arm.losses or arm.outputs):
                curves.append(arm)

    def baseline(self) -> NoiseBaseline:
        """Return what is known so far."""
        if self._baseline is None:
            self._baseline = NoiseBaseline(
                floor=aa_floor(self._pairs),
                spread=pair_spread(self._pairs),
                references=self._references(),
            )
        return self._baseline

    def _references(self) -> ReferenceLosses:
        longest_first = sorted(self._curves, key=lambda arm: -len(arm.losses))
        return ReferenceLosses(
            originals=tuple(arm.losses for arm in longest_first),
            perturbed=tuple(arm.losses for arm in self._perturbed),
            invariants=tuple(arm.invariants for arm in self._curves if arm.invariants),
            perturbed_invariants=tuple(arm.invariants for arm in self._perturbed if arm.invariants),
            sites=longest_first[0].loss_sites if longest_first else (),
            outputs=ReferenceOutputs(
                originals=tuple(sorted((arm.outputs for arm in self._curves if arm.outputs), key=len))[::-1],
                perturbed=tuple(arm.outputs for arm in self._perturbed if arm.outputs),
            ),
        )
