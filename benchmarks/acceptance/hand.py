"""Programs timed by hand: whole processes in ABBA order, the median step of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from benchmarks.acceptance.place import Place

WARM = 0.4
"""Share of a run's steps before the first that counts."""


def seconds_a_step(
    place: Place,
    programs: Mapping[str, Sequence[str]],
    variables: Mapping[str, Mapping[str, str]] | None = None,
    steps: int | None = None,
    rounds: int = 2,
) -> tuple[dict[str, float], float]:
    """Return the seconds a step of each program, and how far two runs of one program were apart, relatively.

    Args:
        place: where.
        programs: each one's model and options.
        variables: of the environment of some.
        steps: in each run.
        rounds: runs of each, in order and backwards in turn.
    """
    num = steps or place.size(120, 80)
    times: dict[str, list[float]] = {name: [] for name in programs}
    for number in range(rounds):
        for name in programs if number % 2 == 0 else reversed([*programs]):
            extra = (variables or {}).get(name, {})
            stamps = place.by_hand(*programs[name], "--steps", str(num), **extra)["stamps_s"]
            first = int(len(stamps) * WARM)
            # The whole stretch: on a device the moments between single steps are the launches'.
            times[name].append((stamps[-1] - stamps[first]) / (len(stamps) - 1 - first))
    spread = max(max(each) / min(each) - 1 for each in times.values())
    return {name: median(each) for name, each in times.items()}, spread
