"""The steps that all ranks of a job are measured over: the same ones, so that their figures can be compared.

Ranks take their steps together, but each has a warm-up, rests and irregular steps of its own. Means over other steps
made ranks of one job look as if one took steps of 236 ms and the other of 150.
"""

from __future__ import annotations

from collections.abc import Mapping

from hotloop.model.observation import Anchor
from hotloop.observe.decode.spans import Timeline
from hotloop.observe.steps.ranks import MIN_STEPS, steady_windows
from hotloop.observe.steps.step_windows import Window, windows

Steps = dict[int, list[Window]]


def same_steps(timelines: Mapping[int, Timeline], anchor: Anchor) -> Steps:
    """Return the steady steps that every rank has timed, by process; each one's own where those are too few.

    Steps are counted from the start of each process. Those of one number that do not overlap in time are not the same.

    Args:
        timelines: of the ranks of one job, by process.
        anchor: what ends a step.
    """
    own = {pid: steady_windows(timeline, anchor) for pid, timeline in timelines.items()}
    every = {pid: windows(timeline, anchor) for pid, timeline in timelines.items()}
    steady = {pid: {step.begin_s for step in steps} for pid, steps in own.items()}
    num = min(map(len, every.values()), default=0)
    common = [
        at
        for at in range(num)
        if all(steps[at].begin_s in steady[pid] for pid, steps in every.items())
        and max(steps[at].begin_s for steps in every.values())
        < min(steps[at].end_s for steps in every.values())
    ]
    if len(common) < MIN_STEPS:
        return own
    return {pid: [steps[at] for at in common] for pid, steps in every.items()}
