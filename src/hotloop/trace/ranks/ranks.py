"""Several ranks side by side: who was late to which collective, and what the others waited."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from hotloop.trace.read.trace import Trace


class Collective(msgspec.Struct, frozen=True):
    """One communication kernel on one rank."""

    name: str
    """Without the protocol and type that versions put into kernel names."""
    group: str | None
    """Its process group; None: the trace does not say."""
    start_ns: int
    end_ns: int


class RankWait(msgspec.Struct, frozen=True, kw_only=True):
    """What a rank waited for others, and they for it."""

    rank: int
    file: str
    num_collectives: int
    num_matched: int
    """Of these, found on all ranks of their group."""
    offset_us: float | None
    """Of its clock against the first rank's, from the ends of shared collectives; about 0 on one host. None: the two
    share none."""
    wait_us: float
    caused_us: float
    num_last: int
    """Collectives that it came to last."""


class CollectiveWait(msgspec.Struct, frozen=True, kw_only=True):
    """One collective across ranks."""

    name: str
    index: int
    """The how-manieth of its name."""
    late_rank: int
    wait_us: float
    """All other ranks together."""
    longest_wait_us: float
    shortest_us: float
    """The late rank's own time in it: what the transfer itself takes at most."""


class Ranks(msgspec.Struct, frozen=True, kw_only=True):
    """The ranks of one job, compared."""

    num: int
    num_matched: int
    """Collectives that were found on every rank of their group."""
    num_unmatched: int
    stragglers: tuple[RankWait, ...]
    """All ranks, the one that made others wait longest first."""
    collectives: tuple[CollectiveWait, ...]
    imbalance: float | None
    """Longest compute time of a rank over the mean, less 1; None: there is no compute."""


_NCCL = re.compile(r"nccl(?:Dev)?Kernel_(?P<op>[A-Za-z]+)(?:_|\(|$)")
_POINT_TO_POINT = frozenset({"send", "recv"})
"""The n-th send of one rank is not the n-th of another."""
_LIMIT = 64


def find_collectives(trace: Trace) -> list[Collective]:
    """Communication kernels by start, without those between two ranks alone."""
    device = trace.device
    rows = np.flatnonzero(device.is_communication)
    rows = rows[np.argsort(device.start[rows], kind="stable")]
    found = [
        Collective(_operation(trace, row), _group(trace, row), int(device.start[row]), int(device.end[row]))
        for row in rows.tolist()
    ]
    return [one for one in found if one.name.lower() not in _POINT_TO_POINT]


def _group(trace: Trace, row: int) -> str | None:
    said = int(trace.device.group[row])
    return trace.names[said] if said >= 0 else None


def _operation(trace: Trace, row: int) -> str:
    said = int(trace.device.collective[row])
    if said >= 0:
        return trace.names[said]
    name = trace.names[int(trace.device.name[row])]
    found = _NCCL.search(name)
    return found["op"] if found else re.split(r"[<(]", name)[0].removeprefix("void ").strip()


def compare_ranks(
    ranks: Sequence[int],
    files: Sequence[str],
    collectives: Sequence[list[Collective]],
    compute_us: Sequence[float],
) -> Ranks | None:
    """Compare ranks by their collectives; None: there are not two, or none that all ranks share.

    A collective ends on all ranks at once, and begins on each when that rank is ready: so the last to come
    is the one that is in it for the shortest time, and the others waited for the difference. Only durations
    are compared, clocks of different hosts need not agree.
    """
    if len(ranks) < 2:
        return None
    matched, unmatched = _match(collectives)
    waits = [_wait(turn, ranks) for turn in matched]
    mean = float(np.mean(compute_us)) if compute_us else 0.0
    return Ranks(
        num=len(ranks),
        num_matched=len(matched),
        num_unmatched=unmatched,
        stragglers=_rank_waits(ranks, files, collectives, matched),
        collectives=tuple(sorted(waits, key=lambda wait: -wait.wait_us)[:_LIMIT]),
        imbalance=max(compute_us) / mean - 1 if mean else None,
    )


@dataclass(frozen=True)
class _Turn:
    """One collective on all ranks of its group."""

    name: str
    index: int
    members: tuple[int, ...]
    """Positions of the ranks."""
    runs: tuple[Collective, ...]

    @property
    def waits(self) -> list[int]:
        """Nanoseconds that each member waited for the last to come."""
        durations = [run.end_ns - run.start_ns for run in self.runs]
        return [duration - min(durations) for duration in durations]

    @property
    def late(self) -> int:
        """Position of the rank that came last."""
        return self.members[self.waits.index(0)]


def _match(collectives: Sequence[list[Collective]]) -> tuple[list[_Turn], int]:
    """The n-th collective of a name in a group is the same one on all its ranks, where all have equally many."""
    found: dict[tuple[str, str | None], dict[int, list[Collective]]] = defaultdict(lambda: defaultdict(list))
    members: dict[str | None, set[int]] = {None: set(range(len(collectives)))}
    for position, one in enumerate(collectives):
        for run in one:
            found[run.name, run.group][position].append(run)
            members.setdefault(run.group, set()).add(position)
    matched: list[_Turn] = []
    unmatched = 0
    for (name, group), runs in sorted(found.items(), key=lambda item: (item[0][0], item[0][1] or "")):
        inside = tuple(sorted(members[group]))
        counts = {len(runs[position]) for position in inside}
        if len(counts) == 1 and len(inside) > 1:
            turns = zip(*(runs[position] for position in inside), strict=True)
            matched.extend(_Turn(name, index, inside, turn) for index, turn in enumerate(turns))
        else:
            unmatched += max(counts)
    return matched, unmatched


def _wait(turn: _Turn, ranks: Sequence[int]) -> CollectiveWait:
    return CollectiveWait(
        name=turn.name,
        index=turn.index,
        late_rank=ranks[turn.late],
        wait_us=sum(turn.waits) / 1000,
        longest_wait_us=max(turn.waits) / 1000,
        shortest_us=min(run.end_ns - run.start_ns for run in turn.runs) / 1000,
    )


def _rank_waits(
    ranks: Sequence[int],
    files: Sequence[str],
    collectives: Sequence[list[Collective]],
    turns: list[_Turn],
) -> tuple[RankWait, ...]:
    waited, caused, last, took_part = ([0] * len(ranks) for _ in range(4))
    offsets: list[list[int]] = [[] for _ in ranks]
    for turn in turns:
        last[turn.late] += 1
        caused[turn.late] += sum(turn.waits)
        for position, wait, run in zip(turn.members, turn.waits, turn.runs, strict=True):
            waited[position] += wait
            took_part[position] += 1
            if turn.members[0] == 0:
                offsets[position].append(run.end_ns - turn.runs[0].end_ns)
    found = [
        RankWait(
            rank=rank,
            file=files[position],
            num_collectives=len(collectives[position]),
            num_matched=took_part[position],
            offset_us=float(np.median(offsets[position])) / 1000 if offsets[position] else None,
            wait_us=waited[position] / 1000,
            caused_us=caused[position] / 1000,
            num_last=last[position],
        )
        for position, rank in enumerate(ranks)
    ]
    return tuple(sorted(found, key=lambda one: (-one.caused_us, one.wait_us)))
