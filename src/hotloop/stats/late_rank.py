"""The rank of a job that the others wait for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from hotloop.model.deep import HostLine
from hotloop.model.observation import Phase, RankObservation
from hotloop.model.quantities import duration

LOCAL = (Phase.DATA, Phase.TRANSFER)
"""Phases in which no rank waits for others; where waits are not known, the others may hold some."""

_PARTS = {
    Phase.DATA: "wait for data",
    Phase.TRANSFER: "copying of batches",
    Phase.OTHER: "code between the phases",
}


@dataclass(frozen=True)
class LateRank:
    """The rank that comes last to the collectives.

    Attributes:
        rank: its number.
        excess_s: of a step, how much longer it works than the median of the others.
        phase: in which most of that is.
        spent_s: what it spends in that phase.
        others_s: the median of what the others do.
        line: of its code in which it spends most of that phase; None: not known.
    """

    rank: int
    excess_s: float
    phase: Phase
    spent_s: float
    others_s: float
    line: HostLine | None


def late_rank(every: Sequence[RankObservation]) -> LateRank | None:
    """Return the rank that works longest, without its waits for others; None: there are not two ranks.

    Processes that say that they are one rank (they inherit `RANK=0`) are not compared.
    """
    ranks = [one for one in every if one.step is not None and one.rank is not None]
    if len({one.rank for one in ranks}) < 2:
        return None
    waits_known = any(Phase.COMMUNICATION in one.phases for one in ranks)
    phases = [phase for phase in Phase if phase is not Phase.COMMUNICATION] if waits_known else LOCAL
    late = max(ranks, key=lambda one: sum(_spent_s(one, phase) for phase in phases))
    others = [one for one in ranks if one.rank != late.rank]

    def excess_s(phase: Phase) -> float:
        return _spent_s(late, phase) - median(_spent_s(one, phase) for one in others)

    own = sum(_spent_s(late, phase) for phase in phases)
    usual = median(sum(_spent_s(one, phase) for phase in phases) for one in others)
    most = max(phases, key=excess_s)
    assert late.rank is not None
    return LateRank(
        rank=late.rank,
        excess_s=own - usual,
        phase=most,
        spent_s=_spent_s(late, most),
        others_s=median(_spent_s(one, most) for one in others),
        line=next((line for line in late.lines if _belongs(line, most, late.lines)), None),
    )


def _belongs(line: HostLine, phase: Phase, lines: Sequence[HostLine]) -> bool:
    """Whether a line is of a phase; what the training thread waits for in `data` is in the loader's workers."""
    in_workers = phase is Phase.DATA and any(one.process == "worker" for one in lines)
    return line.process == "worker" if in_workers else (line.process, line.phase) == ("train", phase.value)


def told(late: LateRank) -> str:
    """Return what the rank does longer than the others, in a sentence's part."""
    part = _PARTS.get(late.phase, late.phase.value)
    return f"its {part} takes {duration(late.spent_s)} a step, that of the others {duration(late.others_s)}"


def _spent_s(rank: RankObservation, phase: Phase) -> float:
    assert rank.step is not None
    return rank.step.whole_s * rank.phases[phase].share if phase in rank.phases else 0.0
