"""Several ranks side by side: who was late to which collective, and what the others waited."""

import re
from collections import defaultdict
from collections.abc import Sequence

import msgspec
import numpy as np

from hotloop.trace.read.trace import Trace


class Collective(msgspec.Struct, frozen=True):
    """One communication kernel on one rank."""

    name: str
    """Without the protocol and type that versions put into kernel names."""
    stream: int
    start_ns: int
    end_ns: int


class RankWait(msgspec.Struct, frozen=True, kw_only=True):
    """What a rank waited for others, and they for it."""

    rank: int
    file: str
    num_collectives: int
    offset_us: float
    """Of its clock against the first rank's, from the ends of shared collectives; about 0 on one host."""
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
    """Collectives that were found on every rank."""
    num_unmatched: int
    stragglers: tuple[RankWait, ...]
    """All ranks, the one that made others wait longest first."""
    collectives: tuple[CollectiveWait, ...]
    imbalance: float | None
    """Longest compute time of a rank over the mean, less 1; None: there is no compute."""


_NCCL = re.compile(r"nccl(?:Dev)?Kernel_(?P<op>[A-Za-z]+)(?:_|\(|$)")
_LIMIT = 64


def find_collectives(trace: Trace) -> list[Collective]:
    """Communication kernels by start."""
    device = trace.device
    rows = np.flatnonzero(device.is_communication)
    rows = rows[np.argsort(device.start[rows], kind="stable")]
    return [
        Collective(
            _operation(trace, row), int(device.stream[row]), int(device.start[row]), int(device.end[row])
        )
        for row in rows.tolist()
    ]


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
    waits = [_wait(name, index, turn, ranks) for name, index, turn in matched]
    mean = float(np.mean(compute_us)) if compute_us else 0.0
    return Ranks(
        num=len(ranks),
        num_matched=len(matched),
        num_unmatched=unmatched,
        stragglers=_rank_waits(ranks, files, collectives, [turn for _, _, turn in matched]),
        collectives=tuple(sorted(waits, key=lambda wait: -wait.wait_us)[:_LIMIT]),
        imbalance=max(compute_us) / mean - 1 if mean else None,
    )


def _match(collectives: Sequence[list[Collective]]) -> tuple[list[tuple[str, int, list[Collective]]], int]:
    """The n-th collective of a name is the same one on all ranks, where all ranks have equally many."""
    by_name: list[dict[str, list[Collective]]] = []
    for one in collectives:
        found: dict[str, list[Collective]] = defaultdict(list)
        for collective in one:
            found[collective.name].append(collective)
        by_name.append(found)
    matched: list[tuple[str, int, list[Collective]]] = []
    unmatched = 0
    for name in sorted(set().union(*by_name)):
        counts = {len(found.get(name, ())) for found in by_name}
        if len(counts) == 1:
            turns = zip(*(found[name] for found in by_name), strict=True)
            matched.extend((name, index, list(turn)) for index, turn in enumerate(turns))
        else:
            unmatched += max(counts)
    return matched, unmatched


def _durations(turn: list[Collective]) -> list[int]:
    return [collective.end_ns - collective.start_ns for collective in turn]


def _wait(name: str, index: int, turn: list[Collective], ranks: Sequence[int]) -> CollectiveWait:
    durations = _durations(turn)
    shortest = min(durations)
    waits = [duration - shortest for duration in durations]
    return CollectiveWait(
        name=name,
        index=index,
        late_rank=ranks[durations.index(shortest)],
        wait_us=sum(waits) / 1000,
        longest_wait_us=max(waits) / 1000,
        shortest_us=shortest / 1000,
    )


def _rank_waits(
    ranks: Sequence[int],
    files: Sequence[str],
    collectives: Sequence[list[Collective]],
    turns: list[list[Collective]],
) -> tuple[RankWait, ...]:
    waited, caused, last = [0] * len(ranks), [0] * len(ranks), [0] * len(ranks)
    for turn in turns:
        durations = _durations(turn)
        shortest = min(durations)
        late = durations.index(shortest)
        last[late] += 1
        for position, duration in enumerate(durations):
            waited[position] += duration - shortest
            caused[late] += duration - shortest
    found = [
        RankWait(
            rank=rank,
            file=files[position],
            num_collectives=len(collectives[position]),
            offset_us=_offset([turn[position].end_ns - turn[0].end_ns for turn in turns]),
            wait_us=waited[position] / 1000,
            caused_us=caused[position] / 1000,
            num_last=last[position],
        )
        for position, rank in enumerate(ranks)
    ]
    return tuple(sorted(found, key=lambda one: (-one.caused_us, one.wait_us)))


def _offset(differences: list[int]) -> float:
    return float(np.median(differences)) / 1000 if differences else 0.0
