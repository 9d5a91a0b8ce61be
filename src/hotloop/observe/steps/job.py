"""What all training processes of a command did: ranks of one job over the same steps, others each by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hotloop.model.observation import Anchor, RankObservation
from hotloop.observe.decode.spans import Timeline
from hotloop.observe.steps.arrival import waited_s, with_waits
from hotloop.observe.steps.ranks import observe_rank, steady_windows
from hotloop.observe.steps.same_steps import same_steps


def observe_ranks(
    timelines: Mapping[int, Timeline],
    on_device: Mapping[int, Timeline],
    anchor: Anchor | None,
    processes: Mapping[int, dict[str, Any]],
) -> Iterator[RankObservation]:
    """Yield what each process did, in the order of their numbers.

    Args:
        timelines: the records on the host's clock, by process.
        on_device: of those that have whole steps on their device's clock; clocks of two devices are not compared.
        anchor: what ends a step; None: nothing does.
        processes: what each process says of itself.
    """
    timed = {pid: on_device.get(pid, timeline) for pid, timeline in sorted(timelines.items())}
    steady = {pid: steady_windows(timeline, anchor) if anchor else [] for pid, timeline in timed.items()}
    ranks = {pid: processes.get(pid, {}).get("rank") for pid in timed if steady[pid]}
    job = {pid: timed[pid] for pid, rank in ranks.items() if rank is not None}
    is_job = len({ranks[pid] for pid in job}) == len(job) > 1
    waited = dict.fromkeys(timed, 0.0)
    if is_job and anchor is not None:
        same = same_steps(job, anchor)
        moved = (
            with_waits(same, job)
            if not on_device and len({len(each) for each in same.values()}) == 1
            else same
        )
        waited.update({pid: waited_s(same[pid], moved[pid]) for pid in job})
        steady.update(moved)
    for pid, timeline in timed.items():
        yield observe_rank(timeline, anchor, processes.get(pid), steady[pid], waited[pid])
