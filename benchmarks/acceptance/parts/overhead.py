"""What observing costs: a program with the probe inside and without, whole processes in ABBA order."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.acceptance.hand import WARM
from benchmarks.acceptance.place import Place
from benchmarks.acceptance.row import Row

ROUNDS = 3


def run(place: Place) -> Iterator[Row]:
    """Alternate."""
    steps = place.size(300, 150)
    times: dict[bool, list[float]] = {False: [], True: []}
    for number in range(ROUNDS):
        for watched in (False, True) if number % 2 == 0 else (True, False):
            times[watched].append(_run(place, steps, watched=watched))
    spread = max(times[False]) / min(times[False]) - 1
    # The fastest of each: what others take only ever adds.
    yield Row(
        what="step with the probe inside, s",
        ours=min(times[True]),
        truth=min(times[False]),
        within=max(0.01, spread),
        how=f"the same without it; two runs without it were {spread:.1%} apart",
    )


def _run(place: Place, steps: int, *, watched: bool) -> float:
    words = ("gpt", "--steps", str(steps))
    if watched:
        place.observe_whole(*words, truth="by-hand.json")
        stamps = place.truth("by-hand.json")["stamps_s"]
    else:
        stamps = place.by_hand(*words)["stamps_s"]
    first = int(len(stamps) * WARM)
    return float((stamps[-1] - stamps[first]) / (len(stamps) - 1 - first))
