"""Does it still learn the same? Loss curves of the same batches, compared with what rounding alone does.

A finite loss is not enough: training amplifies rounding differences until two correct runs differ visibly, so the
allowance is measured. The original runs again (`originals`), and again with its parameters perturbed once at the
roundoff of the candidate's arithmetic and other random choices (`perturbed`, see `perturbation`); a candidate may
depart as far as one more such run would. Where the originals themselves part step by step, it is held to their common
course instead of to one of them. Where even a loss that is a third off could be one of theirs, nothing is decided,
unless the candidate keeps to the original's own course.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from hotloop.model.optimization import Numerics
from hotloop.stats.deviations import Reference
from hotloop.stats.first_steps import check_first_steps
from hotloop.stats.parity_check import MULTIPLE, Check
from hotloop.stats.student import student_quantile

Array = npt.NDArray[np.float64]
Losses = Sequence[float] | Array
"""One loss a step."""

UNDECIDED = ", too few to tell: not decidable in this budget"
"""How the evidence ends where nothing is decided."""
MIN_STEPS = 20
"""Ten windows of two steps: fewer cannot tell a trend from a batch."""
FALSE_REFUSALS = 0.002
"""Of one check; some ten of them are made of one candidate, and most say the same."""
KNOWN_DF = 15.0
"""Degrees of freedom from which the spread between runs is known: its quantile is within a fifth of the normal one."""
TELLING_DRAWS = 3
"""Perturbed runs from which it can be said how far one more might depart."""
ENOUGH_DRAWS = 5
"""With four a swinging loss was decided in 59 of 60 simulated trainings, with one in 46."""
MAX_DF = 30.0
"""It is not known better than that, however many windows agree."""
VISIBLE = 0.5
"""A lasting deviation of the loss that has to be seen, or nothing is decided."""
LASTING = "lasting deviation"
WORST = "worst window"
LEARNING = "learning"
UNTOUCHED = 4.0
"""A change that cannot touch a number is held to its first steps; later it may depart so many times as far."""
_UNIT_ROUNDOFF = {
    "float64": 2.0**-53,
    "float32": 2.0**-24,
    "tf32": 2.0**-11,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
}
_BOUNDLESS = 1e100
"""A loss beyond it has diverged; its square would be more than a float holds."""
_PARTED = 0.3
"""Of what perturbed runs depart: above it a repeat is one of them."""


class _Minimum(msgspec.Struct, frozen=True):
    """Departures that always pass, where the floor is measured as less."""

    level: float
    worst: float
    learning: float


_MINIMA = {
    # Half of what bf16 is allowed: the strict line is held in the first steps, before training amplifies.
    Numerics.EXACT: _Minimum(level=2**-8, worst=3 * 2**-8, learning=0.1),
    # 2^-7: one bf16 ulp of the loss's own level; single windows wander about three times as far as means.
    Numerics.TOLERANCE: _Minimum(level=2**-7, worst=3 * 2**-7, learning=0.1),
}


class Parity(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a candidate learns the same, by the check that came closest to failing (or failed)."""

    passed: bool
    decided: bool = True
    """False: the runs at hand cannot tell; it has not passed then."""
    statistic: float | None
    """None: nothing could be compared."""
    limit: float | None
    num_steps: int
    """Steps compared."""
    method: str
    """The check that `statistic` and `limit` belong to."""
    evidence: str
    """The numbers, in one sentence."""


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
    originals: Sequence[Losses],
    perturbed: Sequence[Losses],
    candidate: Losses,
    *,
    numerics: Numerics,
    touches_numbers: bool = True,
    departed: Losses = (),
    begins_alike: bool = False,
) -> Parity:
    """Whether the candidate's loss curve is the original's, as far as rounding lets any two runs agree.

    Args:
        originals: losses of the original, from the same seed, of every run there was; the first is the reference.
        perturbed: the original with parameters perturbed by `perturbation`, every time otherwise.
        candidate: losses of the candidate on the same batches.
        numerics: how strict; `SEMANTIC` candidates are held to `TOLERANCE`.
        touches_numbers: False: only where and when something is computed can have changed, not what. Loader workers
            draw their own random numbers where the data set does, so of `TOLERANCE` this is believed only as far as
            the first steps agree.
        departed: how far the candidate had departed in other curves of the same training by each step, relative to
            their size; empty: there are none. A generator's first loss comes after its discriminator's first update.
        begins_alike: the gradients of the first step are the original's. With `TELLING_DRAWS` a candidate passes then
            as far as one more run might depart.

    Steps at which the reference itself is not finite are left out (a GradScaler's first steps).
    """
    num = min(len(originals[0]), len(candidate))
    ours, theirs = _array(originals[0], num), _array(candidate, num)
    broken = np.flatnonzero(np.isfinite(ours) & ~np.isfinite(theirs))
    if len(broken):
        return _not_comparable(
            num, "finite", f"loss is {theirs[broken[0]]} at step {broken[0]}, the original's is not"
        )
    if perturbed:  # as many steps as a floor is known for
        num = min(num, max(len(run) for run in perturbed))
        ours, theirs = ours[:num], theirs[:num]
    kept = np.flatnonzero(np.isfinite(ours))
    if len(kept) < MIN_STEPS:
        return _not_comparable(
            len(kept), "length", f"{len(kept)} finite steps to compare; {MIN_STEPS} are needed", decided=False
        )
    repeats, draws = (
        [run[kept] for run in _whole(runs, num) if np.isfinite(run[kept]).all()]
        for runs in (originals[1:], perturbed)
    )
    floors = [*_telling(ours[kept], repeats, draws), *draws]
    checks = _curve_checks(ours[kept], floors, theirs[kept], _minimum(numerics))
    others = _array(departed, num)[kept] if len(departed) else np.zeros(len(kept))
    early = check_first_steps(ours[kept], repeats, draws, theirs[kept], others)
    untouched = not touches_numbers and early.departure <= 1
    if untouched:
        checks = [Check(c.method, c.statistic, UNTOUCHED * c.limit, UNTOUCHED * c.refusal) for c in checks]
    if numerics is Numerics.EXACT or untouched:
        checks.append(early)
    told = begins_alike and len(draws) >= TELLING_DRAWS
    return _closest(checks, len(kept), len(repeats) + len(draws), told=told)


def parts(original: Losses, perturbed: Sequence[Losses]) -> bool:
    """Whether rounding alone moves the losses further than what always passes: then its spread has to be known."""
    num = min([len(original), *(len(run) for run in perturbed)])
    ours = _array(original, num)
    if num < MIN_STEPS or not np.isfinite(ours).all():
        return False
    reference = Reference(ours)
    seen = [reference.deviations(_array(run, num)).overall for run in perturbed]
    return MULTIPLE * _rms(seen) > _MINIMA[Numerics.TOLERANCE].level


def _array(losses: Losses, num: int) -> Array:
    """The first losses; what has gone beyond all bounds is infinite, so that no sum or square of the rest overflows."""
    found = np.asarray(losses[:num], dtype=np.float64)
    return np.where(np.abs(found) > _BOUNDLESS, np.inf, found)


def _whole(runs: Sequence[Losses], num: int) -> list[Array]:
    return [_array(run, num) for run in runs if len(run) >= num]


def _telling(ours: Array, repeats: Sequence[Array], draws: Sequence[Array]) -> list[Array]:
    """The repeats that part like perturbed runs do: one that keeps to the reference does not say how far others go."""
    reference = Reference(ours)
    usual = _rms([reference.deviations(run).overall for run in draws])
    return [run for run in repeats if reference.deviations(run).overall >= _PARTED * usual]


def _minimum(numerics: Numerics) -> _Minimum:
    return _MINIMA.get(numerics, _MINIMA[Numerics.TOLERANCE])


def _not_comparable(num: int, method: str, evidence: str, *, decided: bool = True) -> Parity:
    return Parity(
        passed=False,
        decided=decided,
        statistic=None,
        limit=None,
        num_steps=num,
        method=method,
        evidence=evidence,
    )


def _curve_checks(ours: Array, floors: Sequence[Array], theirs: Array, minimum: _Minimum) -> list[Check]:
    """Compare with the reference, or, where the floors have parted from it, with the course that all of them share."""
    step_by_step = _against(ours, floors, theirs, minimum)
    if len(floors) < 2:
        return step_by_step
    common = _against(np.mean([ours, *floors], axis=0), [ours, *floors], theirs, minimum)
    return min(step_by_step, common, key=_objections)


def _objections(checks: Sequence[Check]) -> tuple[bool, bool, float]:
    departure = max(check.departure for check in checks)
    return departure > 1, any(check.blind for check in checks), departure


def _against(ours: Array, floors: Sequence[Array], theirs: Array, minimum: _Minimum) -> list[Check]:
    reference = Reference(ours)
    seen = reference.deviations(theirs)
    measured = [reference.deviations(run) for run in floors]
    windows = sum(reference.independent_windows(run) for run in floors)
    # One draw of a signed mean may be near 0 by luck, its standard error is not.
    lasting = [max(m.lasting, reference.wander(run)) for m, run in zip(measured, floors, strict=True)]
    learning = [
        max(m.learning or 0.0, reference.learning_wander(run))
        for m, run in zip(measured, floors, strict=True)
    ]
    found = [
        ("mean deviation", seen.overall, _rms([m.overall for m in measured]), minimum.level),
        (LASTING, seen.lasting, _rms(lasting), minimum.level),
        (WORST, seen.worst, _rms([m.worst for m in measured]), minimum.worst),
    ]
    if seen.learning is not None:
        found.append((LEARNING, seen.learning, _rms(learning), minimum.learning))
    # What keeps to the reference throughout, where rounding alone leaves it, does the same.
    follows = all(statistic <= least for _, statistic, _, least in found)
    # What a run says of each: the largest window is one value, lasting is half of them, learned the last quarter.
    known = {WORST: len(floors), LASTING: windows / 2, LEARNING: windows / 4}
    return [_check(*numbers, df=known.get(numbers[0], windows), follows=follows) for numbers in found]


def _check(method: str, statistic: float, scale: float, minimum: float, *, df: float, follows: bool) -> Check:
    """Args: `scale` is what the floors depart by, root mean square; `df` what that is worth.

    One more such run departs by Student's t; every run counts for as many values as its windows are independent.
    """
    quantile = student_quantile(1 - FALSE_REFUSALS / 2, min(MAX_DF, max(1.0, df)))
    refusal = max(minimum, quantile * scale)
    limit = refusal if df >= KNOWN_DF else max(minimum, MULTIPLE * scale)
    return Check(
        method, statistic, limit, refusal, blind=method == LASTING and limit > VISIBLE and not follows
    )


def _rms(values: Sequence[float]) -> float:
    return float(np.sqrt(np.mean(np.square(values)))) if values else 0.0


def _closest(checks: Sequence[Check], num_steps: int, num_runs: int, *, told: bool) -> Parity:
    """Args: `told` says that what has not failed passes: the first gradients are the original's."""
    failed = any(check.failed for check in checks)
    within = all(check.departure <= 1 for check in checks)
    kept = within or (told and not failed)
    blind = any(check.blind for check in checks)
    worst = max(checks, key=lambda check: (check.failed, check.departure))
    shown = "; ".join(f"{c.method} {c.statistic:.2g} (limit {c.limit:.2g})" for c in checks)
    basis = f"floor from {num_runs} more runs of the original" if num_runs else "no floor was measured"
    if kept and not within:
        basis += "; one more may depart as far, and the gradients of the first step are the original's"
    if not failed and not (kept and not blind):
        basis += UNDECIDED
    return Parity(
        passed=kept and not blind,
        decided=failed or (kept and not blind),
        statistic=worst.statistic,
        limit=worst.refusal if worst.failed else worst.limit,
        num_steps=num_steps,
        method=worst.method,
        evidence=f"{shown}; {basis}",
    )
