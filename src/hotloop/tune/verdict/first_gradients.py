"""Whether the gradients of a run's first steps are those of the original, for as long as both are given the same.

Between two runs the weights are the same at first, so gradients differ by rounding alone, and in nothing that another
kernel, precision or place to compute may change. Losses tell far less: after 100 steps a language model knows how often
each word comes, whichever word it was told comes next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from statistics import fmean

import numpy as np

from hotloop.model.learned import GradientSketch, TrainingInvariants
from hotloop.probe.record.invariants import MAX_FORWARDS
from hotloop.stats.parity import TELLING_DRAWS

SAME_BATCH, MADE_BATCH = 1e-5, 1e-3
"""Relative difference of the fingerprints of one batch, and of one that a model made for another (a half of them at
most): in a DCGAN rounding moved those by 1e-7 in the second step and by 2e-4 in the sixteenth."""
SAME = 0.01
"""One minus the cosine: such gradients are the same but for rounding."""
LEAST = 0.1
"""One minus the cosine, mean of the steps: what always passes. Autocast to bf16 gave 0.04 on a CNN, whose dropout alone
makes 0.58 of it, and 2e-5 at most on a GRU and on PPO; labels of the neighbour gave 0.49 and more."""
MULTIPLE = 3.0
"""Times what rounding noise in the weights and other random draws make of it."""
ENOUGH_AGREEING = 10
"""Optimizer steps. Harmless changes of a DCGAN, and of a CNN whose runs part, gave 10 to 16; an optimizer that forgets
gave 4, gradients of eight steps ago 8."""
LEFT = 0.97
"""Of the original's gradients that are not 0: bf16 left 0.999 and more, fp16 without scaling 0.90 and 0.92."""
APART = 2.0
"""Times as far as a change that follows the original's course, and no less than `LEAST`, is every run with other random
choices: gradients that are the same whatever a step is given do not tell."""
UNCHECKED_STEPS = 2
"""First steps that are judged, of a model without dropout, where no run with noise shows how far gradients part."""
_Apart = dict[tuple[int, bool], float]


def other_gradients(
    originals: Sequence[TrainingInvariants],
    seen: TrainingInvariants,
    perturbed: Sequence[TrainingInvariants] = (),
) -> str | None:
    """Return how the gradients of a change differ, in words; None: they do not, or nothing can be said of them.

    Args:
        originals: of every run of the program as it is. A change is held to the one that it is closest to.
        seen: of a run with the change.
        perturbed: of the program with rounding noise and other random choices.
    """
    found = []
    for at, one in enumerate(originals):
        again = [dict(_apart(one, other)) for other in (*originals[:at], *originals[at + 1 :])]
        found.append(_departs(one, seen, again, [dict(_apart(one, other)) for other in perturbed]))
    return found[0] if found and all(found) else None


def begins_alike(originals: Sequence[TrainingInvariants], seen: TrainingInvariants) -> bool:
    """Whether the gradients of the first step, of the same weights and batch, are an original's but for rounding."""
    first = [next(_apart(one, seen), None) for one in originals]
    return any(one is not None and one[0] == (0, True) and one[1] <= LEAST for one in first)


def num_following(
    originals: Sequence[TrainingInvariants],
    seen: TrainingInvariants,
    perturbed: Sequence[TrainingInvariants],
) -> int:
    """Return for how many first steps a change keeps to the course of an original, from which all other runs part.

    The first step is of the same weights and, but for rounding, of the same batch: its gradients have to be the same.
    Later, what it is given may differ by what rounding has made of it: a generator's images do. Nothing here tells what
    begins after these steps, nor what an optimizer does with gradients: `held_invariants` looks at its updates. 0: the
    first step is another, or too few other runs are known.
    """
    return max((_following(one, seen, perturbed) for one in originals), default=0)


def _following(
    original: TrainingInvariants, seen: TrainingInvariants, perturbed: Sequence[TrainingInvariants]
) -> int:
    if original.zero_gradients is None or seen.zero_gradients is None:
        return 0
    if 1 - seen.zero_gradients < LEFT * (1 - original.zero_gradients):
        return 0
    mine = list(takewhile(lambda apart: apart <= LEAST, _angles(original, seen)))
    if not mine or mine[0] > SAME:
        return 0
    others = [list(_angles(original, run))[: len(mine)] for run in perturbed]
    told = [run for run in others if len(run) >= ENOUGH_AGREEING]
    parted = all(fmean(run) >= max(LEAST, APART * fmean(mine[: len(run)])) for run in told)
    return len(mine) if len(told) >= TELLING_DRAWS and parted else 0


def _angles(original: TrainingInvariants, other: TrainingInvariants) -> Iterator[float]:
    """Yield one minus the cosine of each step, for as long as both do as much for it."""
    for mine, theirs in zip(original.gradients, other.gradients, strict=False):
        if (mine.num_forwards, mine.num_values) != (theirs.num_forwards, theirs.num_values):
            return
        apart = _angle(mine, theirs)
        if apart is None:
            return
        yield apart


def num_agreeing(originals: Sequence[TrainingInvariants], seen: TrainingInvariants) -> int:
    """Return for how many first steps in a row the gradients of a change are an original's, but for rounding."""
    runs = [dict(_apart(one, seen)) for one in originals]
    return max(
        (sum(1 for _ in takewhile(lambda apart: apart <= SAME, run.values())) for run in runs), default=0
    )


def _departs(
    original: TrainingInvariants,
    seen: TrainingInvariants,
    again: Sequence[_Apart],
    perturbed: Sequence[_Apart],
) -> str | None:
    # Runs without noise are often the same to the last bit, which does not say how fast small differences grow.
    known = {at for run in perturbed for at, _ in run}
    drawn = {at for run in perturbed for at, same in run if not same}
    mine = dict(_apart(original, seen))
    # Another layout draws as many random numbers, and dropout another mask of them.
    unchecked = 0 if original.num_random or seen.num_random else UNCHECKED_STEPS
    judged = [
        apart
        for (at, same), apart in mine.items()
        if at in (known if same else drawn) or (same and at < unchecked)
    ]
    noisy = [_with_noise(original, run) for run in perturbed]
    usual = max((fmean(run.values()) for run in (*again, *noisy) if run), default=0.0)
    apart = fmean(judged) if judged else 0.0
    if apart <= max(LEAST, MULTIPLE * usual):
        return None
    return (
        f"the first gradients are not the original's: 1 - cosine {apart:.2f}, in its other runs {usual:.2f}"
    )


def _with_noise(original: TrainingInvariants, perturbed: _Apart) -> _Apart:
    """Return the steps of which noise in the weights tells: it comes after the first one (`probe.setup.seeds`).

    Of a model with dropout all: its masks are others from then on, and make more of it than noise.
    """
    first = original.gradients[0].num_forwards if original.gradients else 0
    return {
        key: apart
        for key, apart in perturbed.items()
        if original.num_random or original.gradients[key[0]].num_forwards > first
    }


def _apart(
    original: TrainingInvariants, other: TrainingInvariants
) -> Iterator[tuple[tuple[int, bool], float]]:
    """Yield one minus the cosine of each step while both are given the same; the key says if they drew the same."""
    for at, (mine, theirs) in enumerate(zip(original.gradients, other.gradients, strict=False)):
        num = mine.num_forwards
        if num != theirs.num_forwards or mine.num_values != theirs.num_values:
            return
        if not _given_the_same(original, other, num):
            return
        apart = _angle(mine, theirs)
        if apart is None:
            return
        yield (at, mine.generators == theirs.generators), apart


def _given_the_same(one: TrainingInvariants, other: TrainingInvariants, num: int) -> bool:
    """Whether the first forwards were given the same samples; of those that were not looked at nobody knows.

    A language model may be given its own state of the step before, which is rounded: its tokens tell by themselves.
    """
    return _same(one.batches, other.batches, num) or (
        _tell(one.integers) and _same(one.integers, other.integers, num)
    )


def _tell(integers: Sequence[float]) -> bool:
    """Whether integers tell batches apart: positions, say, are the same in all."""
    return len(set(integers)) > max(1, len(integers) / 2)


def _same(batches: Sequence[float], others: Sequence[float], num: int) -> bool:
    if min(len(batches), len(others)) < num or num >= MAX_FORWARDS:
        return False
    exact, made = (
        np.isclose(batches[:num], others[:num], rtol=within, atol=0.0) for within in (SAME_BATCH, MADE_BATCH)
    )
    return bool(made.all() and 2 * exact.sum() >= num)


def _angle(one: GradientSketch, other: GradientSketch) -> float | None:
    """Return one minus the cosine; None: one of them is zero, or not finite."""
    mine, theirs = (np.frombuffer(each.sums, np.float32).astype(float) for each in (one, other))
    lengths = float(np.linalg.norm(mine) * np.linalg.norm(theirs))
    if not np.isfinite(lengths) or not lengths:
        return None
    return 1 - float(mine @ theirs) / lengths
