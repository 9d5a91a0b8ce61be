"""What a proof must show where memory counts: over sets of fresh processes, as for speed."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hotloop.model.goal import Aim
from hotloop.model.ratio import Ratio
from hotloop.stats.pairs import MIN_BLOCKS
from hotloop.stats.verdict import Decision, Verdict, decide

PEAK_SD, PEAK_DF = 0.005, 3.0
"""Of the log ratio of two peaks in equal processes: counted tensors were the same to the byte in 28 processes of two
programs, resident sizes to 1% (`benchmarks/results/memory-goal-2026-11-28.md`); the degrees of freedom are those of
times."""


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan's memory says of the goal."""

    memory: Ratio | None
    """Peak before over peak after; None: not measured."""
    reached: bool
    """The goal, but for what is learned."""
    is_over: bool = False
    """Its peak was above the limit in some set."""
    peak_bytes: int | None = None
    """The largest of all sets."""


def judged(
    aim: Aim,
    peaks: Sequence[tuple[float | None, int | None, int | None]],
    total: Decision,
    num_sets: tuple[int, int],
) -> Judged:
    """Return where a plan stands.

    Args:
        aim: what it is for.
        peaks: of each set the log ratio of peaks, the original's peak and the plan's.
        total: of its time.
        num_sets: the fewest and the most of a proof.
    """
    gains = [gain for gain, _, _ in peaks if gain is not None]
    sizes = [after for _, _, after in peaks if after is not None]
    largest = max(sizes, default=None)
    # A peak has no blocks: one number for each pair of processes.
    memory = (
        decide(
            [[gain] * MIN_BLOCKS for gain in gains],
            floor=0.0,
            min_pairs=num_sets[0],
            max_pairs=num_sets[1],
            prior_sd=PEAK_SD,
            prior_df=PEAK_DF,
        )
        if gains
        else None
    )
    ratio = memory.ratio if memory is not None else None
    if aim.fit_bytes is None:
        smaller = memory is not None and memory.verdict is Verdict.FASTER
        in_time = total.ratio is not None and total.ratio.low >= 1 / (1 + aim.max_slowdown)
        return Judged(memory=ratio, reached=smaller and in_time, peak_bytes=largest)
    is_over = largest is not None and largest > aim.fit_bytes
    fits = len(sizes) >= num_sets[0] and not is_over
    fitted_before = all(before is not None and before <= aim.fit_bytes for _, before, _ in peaks)
    worth = total.verdict is Verdict.FASTER or not fitted_before
    return Judged(memory=ratio, reached=fits and worth, is_over=is_over, peak_bytes=largest)
