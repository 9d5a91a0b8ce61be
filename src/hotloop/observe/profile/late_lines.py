"""Where the rank that the others wait for spends its time: the instruments look in all ranks at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from hotloop.model.deep import HostLine
from hotloop.model.observation import Observation
from hotloop.observe.decode.instrument_files import has_seen, result_of
from hotloop.observe.decode.spans import Timeline
from hotloop.observe.profile.host_samples import read_host_samples
from hotloop.stats.late_ranks import late_ranks

NUM = 20
"""A rank's lines of all phases that are kept."""


def with_late_lines(observation: Observation, folder: Path, timelines: Mapping[int, Timeline]) -> Observation:
    """Return it with the lines of the rank that comes last to the collectives, where its stacks were sampled.

    Args:
        observation: of the run.
        folder: the probe's.
        timelines: the records, by process.
    """
    late = late_ranks(observation.ranks)
    if late is None:
        return observation
    ranks = tuple(
        msgspec.structs.replace(one, lines=_lines(folder, timelines[one.pid]))
        if one.rank == late.ranks[0]
        else one
        for one in observation.ranks
    )
    return msgspec.structs.replace(observation, ranks=ranks)


def _lines(folder: Path, timeline: Timeline) -> tuple[HostLine, ...]:
    file = result_of(folder, "host", timeline.pid)
    if file is None or not has_seen(file):
        return ()
    return read_host_samples(folder, file, timeline).lines[:NUM]
