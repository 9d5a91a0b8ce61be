"""Blocks of a held program against its own stamps: GEMM-bound, launch-bound, graphed."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from benchmarks.acceptance.place import Place, let_end
from benchmarks.acceptance.row import Row, Skipped

WITHIN = 0.02
NUM_BLOCKS = 6


def run(place: Place) -> Iterator[Row | Skipped]:
    """Time blocks, and compare each with the stamps of the very same steps."""
    yield _blocks(place, "gemm", place.size(12, 20), "GEMM-bound")
    yield _blocks(place, "launches", place.size(60, 40), "launch-bound")
    if place.on_gpu:
        # Inductor takes minutes over a chain of hundreds.
        few = ("--size", '{"num": 30}')
        yield _blocks(place, "launches", 60, "graphed", "--compile", "reduce-overhead", *few)
    else:
        yield Skipped("block, graphed", "a CPU has no graphs")


def _blocks(place: Place, model: str, steps: int, what: str, *words: str) -> Row:
    warm, discard = 10, 3
    total = warm + NUM_BLOCKS * (steps + discard) + 5
    truth = f"blocks-{what}.json"
    measured, spans = [], []
    with place.arm(place.command(model, "--steps", str(total), *words, truth=truth)) as arm:
        arm.advance(warm, discard=1, timeout_s=400)
        for _ in range(NUM_BLOCKS):
            spans.append((arm.steps + discard - 1, arm.steps + discard + steps - 1))
            measured.append(arm.advance(steps + discard, discard=discard, timeout_s=200))
        let_end(arm)
    stamps = place.truth(truth)["stamps_s"]
    true = [stamps[last] - stamps[first] for first, last in spans]
    ratios = [ours / theirs for ours, theirs in zip(measured, true, strict=True)]
    return Row(
        what=f"block, {what}, s a step",
        ours=median(ratios) * median(true) / steps,
        truth=median(true) / steps,
        within=WITHIN,
        how="stamps of the same steps by the program itself (events on a device)",
    )
