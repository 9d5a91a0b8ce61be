"""What the holds of switched knobs say of each knob: by their typical steps, their quickest ones, or as a whole."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from statistics import fmean, median

from hotloop.stats.switching import SwitchedHold, SwitchFit, fit_switches
from hotloop.tune.executor import Hold

BETWEEN = 1.15
"""Time of a hold over that of its training steps, from which what acts on the rest, too, is told from the whole."""
LOOSE = 0.03
"""Standard error of a log gain from which whole holds tell nothing, if steps tell more: something long is in some of
them alone."""


def fitted(
    holds: Sequence[Hold],
    knobs: Sequence[str],
    pairs: Sequence[tuple[str, str]],
    *,
    typical: bool,
    even: Collection[str],
) -> SwitchFit | None:
    """Return the regression over all holds; None: there are too few of them.

    Args:
        holds: in the order in which they were measured.
        knobs: labels of those that act.
        pairs: that may help or hinder one another.
        typical: whether a hold is summed up by its median step, or by its mean (where long steps are the point).
        even: those that shorten every step alike: a typical hold is summed up by its quickest steps for them.
    """

    def fit(some: Sequence[Hold], step_s: Callable[[Hold], float]) -> SwitchFit | None:
        switched = [SwitchedHold(frozenset(hold.on), math.log(step_s(hold))) for hold in some]
        return fit_switches(switched, knobs, pairs)

    usual = median if typical else fmean
    steps = fit(holds, lambda hold: usual(hold.steps_s))
    quickest = fit(holds, lambda hold: quick(hold.steps_s)) if typical and even else None
    if steps is not None and quickest is not None:
        steps = steps.with_terms(quickest, even)
    known = [hold for hold in holds if hold.whole_s is not None]
    if steps is None or not _much_between(known):
        return steps
    return _of_whole(steps, fit(known, _whole_s), _share(known), even)


def quick(steps_s: Sequence[float]) -> float:
    """Return the mean of the quickest quarter of some steps, in seconds.

    A machine that runs at another speed for a tenth of a second lengthens some steps of a hold: on a GAN and a
    reinforcement learner standard errors of gains were 0.7 of those of medians.
    """
    return fmean(sorted(steps_s)[: max(1, len(steps_s) // 4)])


def _of_whole(steps: SwitchFit, wholes: SwitchFit | None, share: float, even: Collection[str]) -> SwitchFit:
    """Return gains of the whole time, of what acts in the steps alone by their share of it.

    A reinforcement learner's rollouts took half of it. With one thread they were quicker, and its steps were slower.
    """
    told = [
        label
        for label in (wholes.knobs if wholes is not None else ())
        if label not in even
        and wholes is not None
        and wholes.gain([label])[1] < max(LOOSE, steps.gain([label])[1])
    ]
    found = steps.scaled(share, [label for label in steps.knobs if label not in told])
    return found.with_terms(wholes, told) if wholes is not None else found


def _much_between(holds: Sequence[Hold]) -> bool:
    """Whether in most holds a good part of the time lies between the steps of training."""
    return 2 * sum(_whole_s(hold) > BETWEEN * fmean(hold.steps_s) for hold in holds) > len(holds)


def _share(holds: Sequence[Hold]) -> float:
    """Return the part of the time that the steps of training take."""
    return median(min(1.0, fmean(hold.steps_s) / _whole_s(hold)) for hold in holds)


def _whole_s(hold: Hold) -> float:
    return hold.whole_s if hold.whole_s is not None else math.nan
