"""The original program's outputs, against which a candidate's are held where nothing is trained.

Without training nothing amplifies rounding: each forward that is given the same gives the same, but for the rounding
of its own arithmetic. How far that goes is measured, too: by the original with rounding noise on its parameters. A text
that is generated goes another way once one token differs, and so does all that is given after it: those forwards are
not compared, but how many they are is.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from hotloop.model.optimization import Numerics
from hotloop.model.tuning import ParityEvidence
from hotloop.probe.record.sketch_rows import (
    CONTINUES,
    EPSILON,
    FROM_GIVEN,
    FROM_MADE,
    GIVEN,
    LARGEST,
    MADE,
    NUM_GIVEN,
    SLOT,
    WIDTH,
)

Array = npt.NDArray[np.float64]
MIN_FORWARDS = 8
"""A percentile of fewer says nothing; the shortest trial takes some twenty steps."""
REORDERED = 1e-3
"""Sums in another order moved losses by 5e-4 at most (see `stats.parity`), float32 outputs by 1e-5."""
ROUNDED = 2.0**-7
"""One bf16 ulp: what reduced precision may always move an output by, relative to its size."""
MULTIPLE = 3.0
"""Times the floor that a candidate may depart: what losses are allowed (`stats.parity.MULTIPLE`)."""
WORST = 4.0
"""Single forwards may be so many times as far off as the mean of all: a sketch errs by a quarter either way."""
APART = 0.1
"""Share of the forwards that may be given something else, because a text went another way."""


class ReferenceOutputs(msgspec.Struct, frozen=True, kw_only=True):
    """Sketches of what the original was given and gave, forward by forward, as they were recorded."""

    originals: tuple[bytes, ...] = ()
    perturbed: tuple[bytes, ...] = ()

    def judge(self, outputs: bytes, *, numerics: Numerics) -> ParityEvidence:
        """Return whether a plan's outputs are the original's."""
        ours = rows(self.originals[0])
        limit = ROUNDED if numerics is not Numerics.EXACT else _reordered(ours)
        repeats = [Departure.of(ours, rows(run), limit) for run in self.originals[1:]]
        perturbed = [Departure.of(ours, rows(run), ROUNDED) for run in self.perturbed]
        seen = Departure.of(ours, rows(outputs), limit)
        if max((repeat.apart for repeat in repeats), default=0.0) > APART:
            why = "runs of the program as it is are given other inputs each time: seed what makes them"
            return _evidence(seen, "inputs", passed=False, decided=False, why=why)
        basis = [*repeats, *perturbed] if numerics is not Numerics.EXACT else repeats
        return _judged(seen, basis, limit)


class Departure(msgspec.Struct, frozen=True, kw_only=True):
    """How far one run's outputs are from another's."""

    num: int
    """Forwards that were given the same."""
    apart: float
    """Share of the forwards that were given something else."""
    mean: float = 0.0
    """Distance of the outputs relative to their size, over those that were given the same."""
    worst: float = 0.0
    broken: int = 0
    """Forwards whose output has values that are not finite where the original's are."""
    same_largest: float = 1.0
    """Share of them whose most likely classes or tokens are all the same."""

    @classmethod
    def of(cls, ours: Array, theirs: Array, limit: float) -> Departure:
        """Compare two runs.

        Args:
            ours: of the original.
            theirs: of the other.
            limit: inputs this close are the same: what a model gives is given to the next one.
        """
        num = min(len(ours), len(theirs))
        ours, theirs = ours[:num], theirs[:num]
        alike = _given_the_same(ours, theirs, limit)
        if not alike.any():
            return cls(num=0, apart=1.0)
        ours, theirs = ours[alike], theirs[alike]
        away = _distance(ours, theirs, FROM_MADE, MADE)
        return cls(
            num=int(alike.sum()),
            apart=float(1 - alike.mean()),
            mean=float(np.minimum(away, 2.0).mean()),
            worst=float(away.max()),
            broken=int((ours[:, FROM_MADE + MADE] != theirs[:, FROM_MADE + MADE]).sum()),
            same_largest=float((ours[:, LARGEST] == theirs[:, LARGEST]).mean()),
        )


def rows(outputs: bytes) -> Array:
    """Return the recorded rows."""
    return np.frombuffer(outputs[: len(outputs) // (8 * WIDTH) * 8 * WIDTH], dtype=np.float64).reshape(
        -1, WIDTH
    )


def _given_the_same(ours: Array, theirs: Array, limit: float) -> npt.NDArray[np.bool_]:
    """Tell forwards that were given the same; none of a text is, once it went another way."""
    kind = [SLOT, CONTINUES, NUM_GIVEN]
    alike: npt.NDArray[np.bool_] = np.all(ours[:, kind] == theirs[:, kind], axis=1)
    alike &= _distance(ours, theirs, FROM_GIVEN, GIVEN) <= limit
    went_on = False
    for at, continues in enumerate(ours[:, CONTINUES]):
        alike[at] = alike[at] and (went_on or not continues)
        went_on = bool(alike[at])
    return alike


def _distance(ours: Array, theirs: Array, begin: int, num: int) -> Array:
    one, other = ours[:, begin : begin + num], theirs[:, begin : begin + num]
    away = np.linalg.norm(one - other, axis=1)
    return np.asarray(away / np.maximum(np.linalg.norm(one, axis=1), np.finfo(np.float32).tiny))


def _reordered(ours: Array) -> float:
    """Return what sums in another order may do to outputs of this type."""
    epsilon = float(ours[:, EPSILON].max(initial=0.0))
    return max(REORDERED, min(ROUNDED, epsilon))


def _judged(seen: Departure, basis: Sequence[Departure], limit: float) -> ParityEvidence:
    if seen.broken:
        why = f"{seen.broken} outputs have values that are not finite where the original's are"
        return _evidence(seen, "finite", passed=False, why=why)
    apart = max(APART, MULTIPLE * _rms([floor.apart for floor in basis]))
    if seen.apart > apart:
        why = f"{seen.apart:.0%} of the forwards were given something else (limit {apart:.0%})"
        return _evidence(seen, "inputs", passed=False, statistic=seen.apart, limit=apart, why=why)
    if seen.num < MIN_FORWARDS:
        why = f"{seen.num} forwards can be compared, {MIN_FORWARDS} are needed"
        return _evidence(seen, "length", passed=False, decided=False, why=why)
    mean = max(limit, MULTIPLE * _rms([floor.mean for floor in basis]))
    worst = max(WORST * limit, MULTIPLE * _rms([floor.worst for floor in basis]))
    checks = [("mean output", seen.mean, mean), ("worst output", seen.worst, worst)]
    method, statistic, most = max(checks, key=lambda check: check[1] / check[2])
    shown = "; ".join(f"{name} {value:.2g} (limit {allowed:.2g})" for name, value, allowed in checks)
    return _evidence(
        seen, method, passed=all(c[1] <= c[2] for c in checks), statistic=statistic, limit=most, why=shown
    )


def _evidence(
    seen: Departure,
    method: str,
    *,
    passed: bool,
    why: str,
    decided: bool = True,
    statistic: float | None = None,
    limit: float | None = None,
) -> ParityEvidence:
    largest = f"the most likely class or token is the same in {seen.same_largest:.1%} of them"
    return ParityEvidence(
        passed=passed,
        decided=decided,
        statistic=statistic,
        limit=limit,
        num_steps=seen.num,
        method=method,
        compared="outputs",
        evidence=f"outputs of {seen.num} forwards, relative to their size: {why}; {largest}",
    )


def _rms(values: Sequence[float]) -> float:
    return float(np.sqrt(np.mean(np.square(values)))) if values else 0.0
