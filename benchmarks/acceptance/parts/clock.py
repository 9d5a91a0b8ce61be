"""The clock of an observation over a minute, beside a prefetcher on a stream of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from statistics import median

from benchmarks.acceptance.place import Place
from benchmarks.acceptance.row import Row

SECONDS_GPU, SECONDS_CPU = 40.0, 20.0


def run(place: Place) -> Iterator[Row]:
    """Observe a whole run that stamps itself."""
    words = (
        ("resnet", "--loader", "--prefetch", "--workers", "2", "--pin")
        if place.on_gpu
        else ("resnet", "--loader")
    )
    a_step = _seconds_a_step(place, *words)
    steps = max(60, int((SECONDS_GPU if place.on_gpu else SECONDS_CPU) / a_step))
    observation = place.observe_whole(*words, "--steps", str(steps), truth="clock.json")
    stamps = place.truth("clock.json")["stamps_s"]
    gaps = [after - before for before, after in pairwise(stamps)]
    yield Row(
        what=f"median step of {stamps[-1]:.0f} s with a prefetcher, s",
        ours=observation.step.median_s if observation.step else None,
        truth=median(gaps[len(gaps) // 10 :]),
        within=0.03,
        how="the program's own stamps of the same run",
    )
    spent = sum(spent for name, spent in observation.run.parts.items() if name.startswith("step_"))
    yield Row(
        what="all steps together, s a step",
        ours=spent / observation.run.num_steps if observation.run.num_steps else None,
        truth=(stamps[-1] - stamps[0]) / (len(stamps) - 1),
        within=0.05,
        how="the program's own stamps of the same run",
    )
    if place.on_gpu:
        yield Row(
            what="steps are on the device's clock",
            ours=float(observation.clock == "device"),
            truth=1.0,
            within=0.0,
            how="it has one",
        )


def _seconds_a_step(place: Place, *words: str) -> float:
    stamps = place.by_hand(*words, "--steps", "20")["stamps_s"]
    return float((stamps[-1] - stamps[9]) / (len(stamps) - 10))
