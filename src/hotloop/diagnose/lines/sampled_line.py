"""The user's line that something belongs to whose time was measured otherwise, from the samples of host stacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import takewhile

from hotloop.diagnose.lines.hot_line import calls_a_module
from hotloop.model.deep import Frame, Sample
from hotloop.model.observation import Observation

Wanted = Callable[[Sample, list[Frame]], bool]
"""Whether a sample, with the frames of its stack, belongs to the thing."""


def sampled_line(observation: Observation, wanted: Wanted) -> tuple[str | None, int | None]:
    """Return path and number of the user's innermost line with the most time of the thing; None: it was not sampled.

    Lines of a model's own forward do not count: the one that calls the model does.
    """
    host = observation.deep.host if observation.deep else None
    spent: Counter[tuple[str, int]] = Counter()
    for sample in host.samples if host else ():
        assert host is not None
        frames = [host.frames[number] for number in sample.stack]
        mine = [
            frame for frame in takewhile(lambda one: not calls_a_module(one), frames) if frame.owner == "user"
        ]
        if sample.process == "train" and mine and wanted(sample, frames):
            spent[mine[-1].path, mine[-1].line] += round(sample.spent_s * 1e6)
    return spent.most_common(1)[0][0] if spent else (None, None)


def under(*endings: str) -> Wanted:
    """Samples with a frame of a file whose path ends so."""

    def wanted(_: Sample, frames: list[Frame]) -> bool:
        return any(frame.path.endswith(endings) for frame in frames)

    return wanted


def during(phase: str) -> Wanted:
    """Samples of a phase."""
    return lambda sample, _: sample.phase == phase
