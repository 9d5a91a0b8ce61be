"""Gradient scaling: the losses are the program's own, and steps that overflow are steps."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.acceptance.place import Place, let_end
from benchmarks.acceptance.row import Row
from hotloop.observe.decode.processes import read_processes


def run(place: Place) -> Iterator[Row]:
    """Hold a program that scales, and compare what was kept."""
    steps = 40
    command = place.command("gpt", "--scaler", "--steps", str(steps + 5), truth="scaler.json")
    with place.arm(command) as arm:
        arm.advance(steps, discard=1, timeout_s=200)
        losses = arm.losses()
        facts = next(iter(read_processes(arm.folder).values()))
        let_end(arm)
    true = place.truth("scaler.json")["losses"][:steps]
    apart = max(abs(ours - theirs) / abs(theirs) for ours, theirs in zip(losses, true, strict=True))
    yield Row(what="losses apart, at most", ours=apart, truth=0.0, within=1e-6, how="the program's own")
    yield Row(
        what="steps left out",
        ours=float(facts["skipped_steps"]),
        truth=2.0,
        within=0.0,
        how="made to overflow",
    )
    yield Row(what="steps", ours=float(facts["steps"]), truth=float(steps), within=0.0, how="backward calls")
