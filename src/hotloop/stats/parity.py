"""Does it still learn the same? Loss curves of the same batches, compared with what rounding alone does.

A finite loss is not enough: training amplifies rounding differences until two correct runs differ
visibly, so the allowance is measured. The original runs again (`repeat`), and again with its parameters
perturbed once at the roundoff of the candidate's arithmetic (`perturbed`, see `perturbation`); a
candidate may depart by a stated multiple of what those do.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from hotloop.model.optimization import Numerics
from hotloop.stats.deviations import Deviations, Reference

Array = npt.NDArray[np.float64]
Losses = Sequence[float] | Array
"""One loss a step."""

MIN_STEPS = 20
"""Ten windows of two steps: fewer cannot tell a trend from a batch."""
MULTIPLE = 3.0
"""The floor is one draw of a random path and so is the candidate: with ten windows the ratio of two such
draws exceeds 3 about once in a hundred (t with 10 degrees of freedom beyond 3.2)."""
_UNIT_ROUNDOFF = {
    "float64": 2.0**-53,
    "float32": 2.0**-24,
    "tf32": 2.0**-11,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
}
_EARLY_STEPS = 5
"""Before training has amplified rounding: parameters have moved by a few updates only."""
_EARLY_MULTIPLE = 10.0
"""The perturbation rounds once, a reordered program rounds at every operation of every step."""
_EARLY_MINIMUM = 1e-4
"""fp32 sums of 10,000 terms reorder to sqrt(10^4) * 2^-24 = 6e-6 relative; some ten layers of them."""


class _Minimum(msgspec.Struct, frozen=True):
    """Departures that always pass, where the floor is measured as less."""

    level: float
    worst: float
    learning: float


_MINIMA = {
    # Half of what bf16 is allowed: the strict line is held in the first steps, before training amplifies.
    Numerics.EXACT: _Minimum(level=2**-8, worst=3 * 2**-8, learning=0.05),
    # 2^-7: one bf16 ulp of the loss's own level; single windows wander about three times as far as means.
    Numerics.TOLERANCE: _Minimum(level=2**-7, worst=3 * 2**-7, learning=0.1),
}


class Parity(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a candidate learns the same, by the check that came closest to failing (or failed)."""

    passed: bool
    statistic: float | None
    """None: nothing could be compared."""
    limit: float | None
    num_steps: int
    """Steps compared."""
    method: str
    """The check that `statistic` and `limit` belong to."""
    evidence: str
    """The numbers, in one sentence."""


class _Check(msgspec.Struct, frozen=True):
    method: str
    statistic: float
    limit: float


def perturbation(arithmetic: str) -> float:
    """Standard deviation of the relative normal noise to put on the parameters for the `perturbed` run.

    Half of the unit roundoff: rounding to nearest errs by 0.4 of it, root mean square. The arithmetic is
    the candidate's: `float32` where it only reorders sums, `bfloat16` where autocast rounds to that.
    Measured on five small trainings of 120-150 steps: bf16 autocast departed 1.3 to 3.0 times as far as
    parameters perturbed by 2^-9 (mean deviation); perturbed by 2^-24 they departed up to 360,000 times
    less, because amplification takes steps.

    Raises:
        KeyError: the arithmetic has no known roundoff.
    """
    return _UNIT_ROUNDOFF[arithmetic] / 2


def check_parity(
    reference: Losses,
    repeat: Losses | None,
    perturbed: Losses | None,
    candidate: Losses,
    *,
    numerics: Numerics,
) -> Parity:
    """Whether the candidate's loss curve is the reference's, as far as rounding lets any two runs agree.

    Args:
        reference: losses of the original run, step by step.
        repeat: the original again with the same seed; None: not run.
        perturbed: the original with parameters perturbed once by `perturbation`; None: not run.
        candidate: losses of the candidate on the same batches.
        numerics: how strict; `SEMANTIC` candidates are held to `TOLERANCE`.

    Steps at which the reference itself is not finite are left out (a GradScaler's first steps).
    """
    num = min(len(reference), len(candidate))
    ours, theirs = _array(reference, num), _array(candidate, num)
    broken = np.flatnonzero(np.isfinite(ours) & ~np.isfinite(theirs))
    if len(broken):
        return _not_comparable(
            num, "finite", f"loss is {theirs[broken[0]]} at step {broken[0]}, the original's is not"
        )
    runs = [_array(run, num) for run in (repeat, perturbed) if run is not None and len(run) >= num]
    kept = np.flatnonzero(np.isfinite(ours))
    if len(kept) < MIN_STEPS:
        return _not_comparable(
            len(kept), "length", f"{len(kept)} finite steps to compare; {MIN_STEPS} are needed"
        )
    floors = [run[kept] for run in runs if np.isfinite(run[kept]).all()]
    checks = _checks(ours[kept], floors, theirs[kept], numerics)
    return _closest(checks, len(kept), len(floors))


def _array(losses: Losses, num: int) -> Array:
    return np.asarray(losses[:num], dtype=np.float64)


def _not_comparable(num: int, method: str, evidence: str) -> Parity:
    return Parity(passed=False, statistic=None, limit=None, num_steps=num, method=method, evidence=evidence)


def _checks(ours: Array, floors: Sequence[Array], theirs: Array, numerics: Numerics) -> list[_Check]:
    """Every comparison that the numerics class asks for."""
    reference = Reference(ours)
    checks = _curve_checks(reference, floors, theirs, _MINIMA.get(numerics, _MINIMA[Numerics.TOLERANCE]))
    if numerics is Numerics.EXACT:
        checks.append(_early_check(reference, floors, theirs))
    return checks


def _curve_checks(
    reference: Reference, floors: Sequence[Array], theirs: Array, minimum: _Minimum
) -> list[_Check]:
    seen = reference.deviations(theirs)
    measured = [reference.deviations(run) for run in floors]
    wander = max((reference.wander(run) for run in floors), default=0.0)
    checks = [
        _Check("mean deviation", seen.overall, _limit([m.overall for m in measured], minimum.level)),
        _Check(
            "lasting deviation",
            seen.lasting,
            _limit([*(m.lasting for m in measured), wander], minimum.level),
        ),
        _Check("worst window", seen.worst, _limit([m.worst for m in measured], minimum.worst)),
    ]
    if seen.learning is not None:
        checks.append(_Check("learning", seen.learning, _limit(_learning(measured), minimum.learning)))
    return checks


def _learning(measured: Sequence[Deviations]) -> list[float]:
    return [m.learning for m in measured if m.learning is not None]


def _limit(floors: Sequence[float], minimum: float) -> float:
    return max(minimum, MULTIPLE * max(floors, default=0.0))


def _early_check(reference: Reference, floors: Sequence[Array], theirs: Array) -> _Check:
    """The first steps agree to rounding: reordered sums and nothing else."""
    scale = np.maximum(np.abs(reference.losses[:_EARLY_STEPS]), reference.scale[0])

    def departure(run: Array) -> float:
        return float((np.abs(run - reference.losses)[:_EARLY_STEPS] / scale).max())

    floor = max((departure(run) for run in floors), default=0.0)
    return _Check("first steps", departure(theirs), max(_EARLY_MINIMUM, _EARLY_MULTIPLE * floor))


def _closest(checks: Sequence[_Check], num_steps: int, num_floors: int) -> Parity:
    worst = max(checks, key=lambda check: check.statistic / check.limit)
    shown = "; ".join(f"{c.method} {c.statistic:.2g} (limit {c.limit:.2g})" for c in checks)
    basis = f"floor from {num_floors} runs of the original" if num_floors else "no floor was measured"
    return Parity(
        passed=worst.statistic <= worst.limit,
        statistic=worst.statistic,
        limit=worst.limit,
        num_steps=num_steps,
        method=worst.method,
        evidence=f"{shown}; {basis}",
    )
