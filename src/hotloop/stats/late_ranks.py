"""The ranks of a job that the others wait for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from hotloop.model.deep import HostLine
from hotloop.model.observation import Phase, RankObservation
from hotloop.model.quantities import duration, listed

LOCAL = (Phase.DATA, Phase.TRANSFER)
"""Phases in which no rank waits for others; where waits are not known, the others may hold some."""

_PARTS = {
    Phase.DATA: "wait for data",
    Phase.TRANSFER: "copying of batches",
    Phase.OTHER: "code between the phases",
}


@dataclass(frozen=True)
class LateRanks:
    """The ranks that come last to the collectives: most often one, or those that share a stage or a machine.

    Attributes:
        ranks: their numbers, the latest first.
        excess_s: of a step, how much longer each of them works than any of the others.
        phase: in which most of that is.
        spent_s: the median of what they spend in that phase.
        others_s: the median of what the others do.
        line: of the latest one's code in which it spends most of that phase; None: not known.
    """

    ranks: tuple[int, ...]
    excess_s: float
    phase: Phase
    spent_s: float
    others_s: float
    line: HostLine | None


def late_ranks(every: Sequence[RankObservation]) -> LateRanks | None:
    """Return the ranks that work longest, without their waits for others; None: there are not two ranks.

    Late are those nearer to the latest than to the median of the rest: without one of two that are late alike, the
    others wait as long. Processes that say that they are one rank (they inherit `RANK=0`) are not compared.
    """
    ranks = [one for one in every if one.step is not None and one.rank is not None]
    if len({one.rank for one in ranks}) < 2:
        return None
    waits_known = any(Phase.COMMUNICATION in one.phases for one in ranks)
    phases = [phase for phase in Phase if phase is not Phase.COMMUNICATION] if waits_known else LOCAL

    def own_s(one: RankObservation) -> float:
        return sum(_spent_s(one, phase) for phase in phases)

    latest, *rest = sorted(ranks, key=own_s, reverse=True)
    middle_s = (own_s(latest) + median(map(own_s, rest))) / 2
    late = [latest, *(one for one in rest if own_s(one) > middle_s)]
    others = rest[len(late) - 1 :]

    def spent_s(group: Sequence[RankObservation], phase: Phase) -> float:
        return median(_spent_s(one, phase) for one in group)

    most = max(phases, key=lambda phase: spent_s(late, phase) - spent_s(others, phase))
    return LateRanks(
        ranks=tuple(one.rank for one in late if one.rank is not None),
        excess_s=own_s(late[-1]) - own_s(others[0]),
        phase=most,
        spent_s=spent_s(late, most),
        others_s=spent_s(others, most),
        line=next((line for line in latest.lines if _belongs(line, most, latest.lines)), None),
    )


def _belongs(line: HostLine, phase: Phase, lines: Sequence[HostLine]) -> bool:
    """Whether a line is of a phase; what the training thread waits for in `data` is in the loader's workers."""
    in_workers = phase is Phase.DATA and any(one.process == "worker" for one in lines)
    return line.process == "worker" if in_workers else (line.process, line.phase) == ("train", phase.value)


def named(late: LateRanks) -> str:
    """Return who comes last: `rank 1 comes`, `ranks 6 and 7 come`."""
    numbers = [str(rank) for rank in late.ranks]
    return f"ranks {listed(numbers)} come" if len(numbers) > 1 else f"rank {numbers[0]} comes"


def told(late: LateRanks) -> str:
    """Return what they do longer than the others, in a sentence's part."""
    part, whose = _PARTS.get(late.phase, late.phase.value), "their" if len(late.ranks) > 1 else "its"
    return (
        f"{whose} {part} takes {duration(late.spent_s)} a step, that of the others {duration(late.others_s)}"
    )


def _spent_s(rank: RankObservation, phase: Phase) -> float:
    assert rank.step is not None
    return rank.step.whole_s * rank.phases[phase].share if phase in rank.phases else 0.0
