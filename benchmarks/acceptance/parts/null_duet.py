"""A compiled arm beside one that is not: the duet's ratio against whole processes by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median, quantiles

from benchmarks.acceptance.hand import seconds_a_step
from benchmarks.acceptance.place import Place, both
from benchmarks.acceptance.row import Row
from hotloop.model.optimization import Candidate, Numerics
from hotloop.tune.design.block_length import Blocks
from hotloop.tune.executor import SetOrder, SetRecord


def run(place: Place) -> Iterator[Row]:
    """Compile a GEMM-bound net into graphs, which changes next to nothing."""
    yield from _compiled(place, "gemm", "reduce-overhead" if place.on_gpu else "default")


def compiled_arm(place: Place) -> Iterator[Row]:
    """Compile a GPT as a whole within an arm."""
    yield from _compiled(place, "gpt", "default")


def _compiled(place: Place, model: str, mode: str) -> Iterator[Row]:
    step = Candidate(name="compile", params={"mode": mode}, numerics=Numerics.TOLERANCE)
    blocks = Blocks(num_steps=place.size(20, 25), discard=3, warm_steps=10, max_rounds=None)
    command = place.command(model, "--steps", str(10**9))
    with place.executor(command, blocks, place.observe(model, seconds=2)) as (runner, _):
        record = runner.run(SetOrder(plans=((), (step,)), max_rounds=10), both)
    logs = record.log_ratios([0], 1) if isinstance(record, SetRecord) else ()
    ratio = math.exp(median(logs)) if logs else None
    apart = math.expm1(half_range(logs)) if logs else 0.0
    hand, spread = seconds_a_step(
        place, {"as it was": (model,), "compiled": (model, "--compile", mode)}, rounds=3
    )
    yield Row(
        what=f"ratio of compile({mode}) on {model}",
        ours=ratio,
        truth=hand["as it was"] / hand["compiled"],
        within=max(0.03, apart, spread),
        how=f"whole processes by hand, in ABBA order; two of one program were {spread:.0%} apart, blocks {apart:.0%}",
    )


def half_range(values: Sequence[float]) -> float:
    """Return half of the range that holds the middle half of the values."""
    low, _, high = quantiles(values, n=4)
    return (high - low) / 2
