"""A program that asks for memory without end: the trial says so, and what it said last is kept."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.acceptance.place import Place, both
from benchmarks.acceptance.row import Row
from hotloop.model.tuning import FailureKind
from hotloop.tune.design.block_length import Blocks
from hotloop.tune.executor import SetFailed, SetOrder


def run(place: Place) -> Iterator[Row]:
    """Run a set of it."""
    blocks = Blocks(num_steps=5, discard=1, warm_steps=5, max_rounds=None)
    command = place.command("gpt", "--steps", "100", "--too-much", "12")
    with place.executor(command, blocks, place.observe("gpt", seconds=2)) as (runner, _):
        failed = runner.run(SetOrder(plans=((), ()), max_rounds=4), both)
    known = isinstance(failed, SetFailed) and failed.failure.kind is FailureKind.OUT_OF_MEMORY
    yield Row(
        what="ended as out of memory", ours=float(known), truth=1.0, within=0.0, how="what the program does"
    )
    said = isinstance(failed, SetFailed) and "llocate" in failed.failure.log_end
    yield Row(what="its last words are kept", ours=float(said), truth=1.0, within=0.0, how="its log")
