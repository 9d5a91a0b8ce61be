"""Sets of two arms as one set of all, where all have no room beside one another."""

from __future__ import annotations

from collections.abc import Sequence

from hotloop.model.tuning import Contention
from hotloop.tune.executor import SetRecord


def linked(chain: Sequence[SetRecord]) -> SetRecord:
    """Return neighbouring pairs as one record: each pair goes on where the one before ended.

    Ratios are kept as they were measured; the ratio of the first arm to the last is their product.
    """
    num_rounds = min(len(record.rounds) for record in chain)
    rounds = []
    for number in range(num_rounds):
        times = list(chain[0].rounds[number])
        for record in chain[1:]:
            slow, fast = record.rounds[number]
            times.append(times[-1] * fast / slow)
        rounds.append(tuple(times))
    arms = (chain[0].arms[0], *(record.arms[1] for record in chain))
    return SetRecord(
        rounds=tuple(rounds), arms=arms, contention=total_contention([r.contention for r in chain])
    )


def total_contention(reports: Sequence[Contention]) -> Contention:
    """Return what others did over several sets."""
    shares = [report.max_foreign_share for report in reports if report.max_foreign_share is not None]
    return Contention(
        num_blocks=sum(report.num_blocks for report in reports),
        num_void=sum(report.num_void for report in reports),
        num_noisy=sum(report.num_noisy for report in reports),
        max_foreign_share=max(shares, default=None),
    )
