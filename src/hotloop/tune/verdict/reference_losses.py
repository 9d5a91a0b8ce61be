"""The original program's loss curves, against which every candidate's is held."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from hotloop.model.optimization import Candidate, Numerics
from hotloop.model.tuning import ParityEvidence
from hotloop.stats.parity import MIN_STEPS, check_parity


class ReferenceLosses(msgspec.Struct, frozen=True, kw_only=True):
    """Losses of the original, step by step, from the same seed."""

    original: tuple[float, ...]
    repeat: tuple[float, ...]
    """The original again."""
    perturbed: tuple[float, ...] = ()
    """With rounding noise on its parameters and other random choices; empty: not run."""

    def check(self, losses: Sequence[float], plan: Sequence[Candidate]) -> ParityEvidence:
        """Return whether a plan's losses are the original's, by the least strict class among its steps.

        A plan that lowers precision anywhere, or that chooses other kernels, is held to the floor of the perturbed run.
        """
        loose = any(candidate.numerics is not Numerics.EXACT for candidate in plan)
        num = min(len(self.original), len(losses))
        if num < MIN_STEPS and all(math.isfinite(loss) for loss in losses):
            return _not_compared(loose, num)
        parity = check_parity(
            self.original,
            self.repeat or None,
            self.perturbed or None if any(candidate.rounds_differently for candidate in plan) else None,
            losses,
            numerics=Numerics.TOLERANCE if loose else Numerics.EXACT,
        )
        return ParityEvidence(**msgspec.structs.asdict(parity))


def _not_compared(loose: bool, num: int) -> ParityEvidence:
    """Without a curve nothing proves that reduced precision learns the same; exact changes need no proof."""
    seen = f"{num} losses were seen, {MIN_STEPS} are needed to compare" if num else "no loss was seen"
    why = "" if num else ": backward was never called on a scalar"
    return ParityEvidence(
        passed=not loose,
        statistic=None,
        limit=None,
        num_steps=num,
        method="not measured",
        evidence=seen + why,
    )
