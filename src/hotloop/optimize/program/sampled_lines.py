"""How much of the step was sampled in some lines of the program."""

from __future__ import annotations

import os
from collections.abc import Sequence

from hotloop.model.observation import Observation

Lines = tuple[str, int, int]
"""Path, first and last line."""


def sampled_share(observation: Observation, places: Sequence[Lines]) -> float | None:
    """Return the share of the step that was sampled in these lines; None: the host was not sampled."""
    deep = observation.deep
    if deep is None or deep.host is None:
        return None
    return sum(
        line.share
        for line in deep.host.lines
        if line.process == "train"
        and any(
            os.path.abspath(line.path) == path and first <= line.line <= last
            for path, first, last in set(places)
        )
    )
