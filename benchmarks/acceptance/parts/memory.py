"""Memory: the peak, two arms that have room and two that have not, and nothing that is left behind."""

from __future__ import annotations

from collections.abc import Iterator

import psutil

from benchmarks.acceptance.place import Place, both
from benchmarks.acceptance.row import Row, Skipped
from hotloop.launch.process import become_reaper
from hotloop.machine.devices.free_memory import free_memory
from hotloop.model.observation import Observation
from hotloop.tune.design.block_length import Blocks
from hotloop.tune.executor import SetOrder, SetRecord
from hotloop.tune.trials.arm import Arm

BLOCKS = Blocks(num_steps=5, discard=1, warm_steps=5, max_rounds=None)


def run(place: Place) -> Iterator[Row | Skipped]:
    """Observe the peak; run sets of programs of 30% and 60% of the device."""
    become_reaper()
    hold = str(place.size(2048, 256))
    observation = place.observe("gpt", "--hold", hold, seconds=5)
    truth = place.by_hand("gpt", "--hold", hold, "--steps", "60")["peak_bytes"]
    yield Row(
        what="peak, MiB",
        ours=(observation.memory.peak_bytes or 0) / 2**20,
        truth=truth / 2**20,
        # On a CPU the probe itself and its profilers are part of the resident set.
        within=0.01 if place.on_gpu else 0.10,
        how="max_memory_allocated by hand" if place.on_gpu else "getrusage by hand",
    )
    if not place.on_gpu:
        yield Skipped("programs of 30% and 60% of the device", "a CPU's memory is everybody's")
        yield from _left_behind(place)
        return
    total = observation.memory.devices[0].total_bytes
    yield from _beside(place, total, 0.30, most_alive=2)
    yield from _beside(place, total, 0.60, most_alive=1)
    yield from _left_behind(place)


def _beside(place: Place, total: int, share: float, most_alive: int) -> Iterator[Row]:
    hold = str(int(share * total) >> 20)
    observation = place.observe("gpt", "--hold", hold, seconds=3)
    command = place.command("gpt", "--steps", str(10**9), "--hold", hold)
    with place.executor(command, BLOCKS, observation) as (runner, crew):
        seen = 0
        start = crew.start

        def counted(order: SetOrder, at: int) -> Arm:
            nonlocal seen
            arm = start(order, at)
            seen = max(seen, len(crew.alive))
            return arm

        crew.start = counted  # type: ignore[method-assign]
        record = runner.run(SetOrder(plans=((), ()), max_rounds=4), both)
    yield Row(
        what=f"arms alive at once, of {share:.0%} of the device each",
        ours=float(seen) if isinstance(record, SetRecord) else None,
        truth=float(most_alive),
        within=0.0,
        how="the device's size",
    )


def _left_behind(place: Place) -> Iterator[Row | Skipped]:
    """Sets one after the other: in the end there is nothing of them."""
    before, memory = _processes(), _used()
    observation: Observation = place.observe("gpt", seconds=2)
    command = place.command("gpt", "--steps", str(10**9))
    alive: list[int] = []
    with place.executor(command, BLOCKS, observation) as (runner, crew):
        for _ in range(3):
            runner.run(SetOrder(plans=((), ()), max_rounds=3), both)
            alive.append(len(crew.alive))
    yield Row(
        what="arms that live on after a set",
        ours=float(max(alive)),
        truth=0.0,
        within=0.0,
        how="a set is over",
    )
    yield Row(
        what="processes left behind", ours=float(_processes() - before), truth=0.0, within=0.0, how="psutil"
    )
    if memory is None:
        yield Skipped("device memory left behind", "no driver tells")
    else:
        yield Row(
            what="device memory left behind, MiB",
            ours=(_used() or 0) / 2**20 - memory / 2**20,
            truth=0.0,
            within=64.0,
            how="the driver, before and after",
        )


def _processes() -> int:
    return sum("train.py" in " ".join(child.cmdline()) for child in psutil.Process().children(recursive=True))


def _used() -> int | None:
    rows = free_memory()
    return sum(row.total_bytes - row.free_bytes for row in rows) if rows else None
