"""The verdict on a candidate after each fresh pair, and whether another pair is wanted."""

import math
from collections.abc import Collection, Sequence
from enum import Enum

import msgspec

from hotloop.model.ratio import Ratio
from hotloop.stats.futility import can_still_settle
from hotloop.stats.pairs import DEFAULT_PRIOR_DF, DEFAULT_PRIOR_SD, MIN_BLOCKS, ratio_interval
from hotloop.stats.spending import look_levels
from hotloop.stats.student import student_quantile

MIN_MARGIN = 0.01
"""No difference below 1% is claimed: the same program varies 5-15% from run to run."""
FUTILE = "; more pairs would hardly settle it"
"""How the reason of an open decision ends that the pairs left are unlikely to change."""
TELLING = 4.0
"""An interval that spans more than this factor tells nothing, and is not shown."""


class Verdict(str, Enum):
    """What may be said of a candidate."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    """The whole interval lies within the margin of 1."""
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"
    """The measurements cannot be compared."""


class Decision(msgspec.Struct, frozen=True):
    """A verdict, the interval it rests on, and whether another pair is worth its time."""

    verdict: Verdict
    ratio: Ratio | None
    """With an interval that holds at every look together; None: there is nothing to compare."""
    more: bool
    """Another fresh pair is wanted: undecided, pairs left, and a fair chance that they settle it."""
    reason: str
    """One sentence with the numbers."""


def margin(floor: float) -> float:
    """The smallest relative difference that counts, above the machine's floor."""
    return max(MIN_MARGIN, floor)


def decide(
    pairs: Sequence[Sequence[float]],
    *,
    floor: float,
    min_pairs: int = 3,
    max_pairs: int = 8,
    confidence: float = 0.95,
    prior_sd: float = DEFAULT_PRIOR_SD,
    prior_df: float = DEFAULT_PRIOR_DF,
    disturbed: Collection[int] = (),
) -> Decision:
    """What the pairs so far allow to say; valid when called after every pair.

    The levels of the looks at `min_pairs`, `min_pairs + 1`, ... `max_pairs` pairs spend one allowance
    (see `spending`), so the interval holds at all of them together with `confidence`.

    Args:
        pairs: block log ratios log(time_incumbent / time_candidate) of each fresh pair, in order.
        floor: from `floor.aa_floor`.
        min_pairs: no verdict before; at least 2.
        max_pairs: no more is asked for after.
        confidence: that the interval holds the true ratio at all looks together.
        prior_sd: spread of identical processes, see `pairs.ratio_interval`.
        prior_df: what that spread is worth.
        disturbed: numbers of the pairs that others were seen to be busy beside.
    """
    problem = _problem(pairs)
    if problem is not None:
        return Decision(Verdict.INVALID, None, False, problem)
    level = _level(len(pairs), min_pairs, max_pairs, 1 - confidence)
    ratio = ratio_interval(
        pairs, confidence=1 - level, prior_sd=prior_sd, prior_df=prior_df, disturbed=disturbed
    )
    edge = 1 + margin(floor)
    if len(pairs) < min_pairs:
        shown = f"{_shown(ratio, len(pairs))}; a verdict needs {min_pairs}"
        return Decision(Verdict.INCONCLUSIVE, ratio, True, shown)
    verdict = _place(ratio, edge)
    wanted = verdict is Verdict.INCONCLUSIVE and len(pairs) < max_pairs
    # What was disturbed hardly counts: clean pairs to come narrow the interval more than their number says.
    counted = len(pairs) - len(disturbed) or len(pairs)
    more = wanted and can_still_settle(
        ratio,
        edge=edge,
        num_pairs=counted,
        max_pairs=counted + max_pairs - len(pairs),
        level=level,
        df=prior_df + counted - 1,
    )
    futile = FUTILE if wanted and not more else ""
    bounds = f"slower is what lies below {1 / edge:.3f}, faster what lies above {edge:.3f}"
    return Decision(verdict, ratio, more, f"{_shown(ratio, len(pairs))}; {bounds}{futile}")


def needed_errors(num: int, min_pairs: int, max_pairs: int, confidence: float = 0.95) -> float:
    """Return half of the interval at a look at `num` pairs, in standard errors of the mean over them."""
    level = _level(num, min_pairs, max_pairs, 1 - confidence)
    return student_quantile(1 - level / 2, DEFAULT_PRIOR_DF + num - 1)


def _problem(pairs: Sequence[Sequence[float]]) -> str | None:
    """Why the pairs cannot be compared; None where they can."""
    if not pairs:
        return "no pair was measured"
    for index, blocks in enumerate(pairs):
        if len(blocks) < MIN_BLOCKS:
            return f"pair {index + 1} has {len(blocks)} valid blocks; {MIN_BLOCKS} are needed"
        if not all(math.isfinite(value) for value in blocks):
            return f"pair {index + 1} has a block whose ratio is not a finite number"
    return None


def _level(num: int, min_pairs: int, max_pairs: int, alpha: float) -> float:
    """Error level of the look at `num` pairs; the strictest one before the first and after the last look."""
    looks = range(min_pairs, max(min_pairs, max_pairs) + 1)
    levels = look_levels(tuple(look / looks[-1] for look in looks), alpha)
    return levels[num - min_pairs] if num in looks else min(levels)


def _place(ratio: Ratio, edge: float) -> Verdict:
    """Where the interval lies relative to the band from 1 / edge to edge."""
    if ratio.low > edge:
        return Verdict.FASTER
    if ratio.high < 1 / edge:
        return Verdict.SLOWER
    if ratio.low > 1 / edge and ratio.high < edge:
        return Verdict.SAME
    return Verdict.INCONCLUSIVE


def _shown(ratio: Ratio, num: int) -> str:
    if ratio.high > TELLING * ratio.low:
        return f"times varied too much to tell, over {num} pair{'s' * (num != 1)}"
    return f"{ratio.ratio:.3f} [{ratio.low:.3f}, {ratio.high:.3f}] over {num} pair{'s' * (num != 1)}"
