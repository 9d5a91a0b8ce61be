"""What all training processes of a command did: ranks of one job over the same steps, others each by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hotloop.model.observation import Anchor, Phase, PhaseTime, RankObservation
from hotloop.observe.decode.spans import Timeline
from hotloop.observe.steps.arrival import moved_s, with_waits
from hotloop.observe.steps.ranks import observe_rank, phases_of_rank, steady_windows
from hotloop.observe.steps.same_steps import Steps, same_steps
from hotloop.observe.steps.step_windows import Window


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
    waited: dict[int, list[float]] = {}
    job = {pid: timed[pid] for pid in job_of(steady, processes)}
    if job and anchor is not None:
        same = same_steps(job, anchor)
        moved = same if on_device else waits_apart(same, job)
        waited = {pid: moved_s(same[pid], moved[pid]) for pid in job}
        steady.update(moved)
    for pid, timeline in timed.items():
        yield observe_rank(timeline, anchor, processes.get(pid), steady[pid], waited.get(pid, ()))


def job_of(steps: Mapping[int, Sequence[Window]], processes: Mapping[int, dict[str, Any]]) -> list[int]:
    """Return the processes that are ranks of one job and took steps; empty: there are not two, or they say to be one.

    Args:
        steps: by process.
        processes: what each process says of itself.
    """
    ranks = {pid: processes.get(pid, {}).get("rank") for pid, own in steps.items() if own}
    job = [pid for pid, rank in ranks.items() if rank is not None]
    return job if len({ranks[pid] for pid in job}) == len(job) > 1 else []


def waits_apart(steps: Steps, timelines: Mapping[int, Timeline]) -> Steps:
    """Return the steps of a job with waits for later ranks as communication; as they are where they are not the same.

    Args:
        steps: by process.
        timelines: the records, on one clock.
    """
    return with_waits(steps, timelines) if len({len(each) for each in steps.values()}) == 1 else steps


def phases_of(
    lead: int,
    steps: Steps,
    timelines: Mapping[int, Timeline],
    processes: Mapping[int, dict[str, Any]],
) -> dict[Phase, PhaseTime]:
    """Return the phases of one process's steps, with what it waits for others as communication.

    Args:
        lead: the process.
        steps: the same ones of each process.
        timelines: the records, by process.
        processes: what each process says of itself.
    """
    job = {pid: steps[pid] for pid in job_of(steps, processes)} or {lead: steps[lead]}
    moved = waits_apart(job, timelines).get(lead, steps[lead])
    waited = moved_s(steps[lead], moved)
    timed = [at for at, step in enumerate(moved) if not step.lean]
    return phases_of_rank(
        [moved[at] for at in timed], processes.get(lead) or {}, [waited[at] for at in timed]
    )
