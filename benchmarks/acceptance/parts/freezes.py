"""An arm that was frozen for a while goes on as before."""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median

from benchmarks.acceptance.place import Place
from benchmarks.acceptance.row import Row

SECONDS = (1, 10, 30)


def run(place: Place) -> Iterator[Row]:
    """Freeze it, and compare the blocks after with those before."""
    steps, discard = place.size(20, 30), 3
    with place.arm(place.command("gpt", "--steps", str(10**9), "--loader", "--workers", "1")) as arm:
        arm.advance(20, discard=1, timeout_s=200)

        def blocks(num: int) -> list[float]:
            return [arm.advance(steps + discard, discard=discard, timeout_s=200) for _ in range(num)]

        before = blocks(6)
        for seconds in SECONDS:
            time.sleep(seconds)
            after = blocks(4)
            spread = max(before) / min(before) - 1
            yield Row(
                what=f"block after a freeze of {seconds} s, s a step",
                ours=median(after) / steps,
                truth=median(before) / steps,
                within=max(0.02, spread),
                how="blocks before it",
            )
