"""The parts of the acceptance; each takes less than six minutes and yields rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.acceptance.parts import (
    blocks,
    clock,
    freezes,
    machine,
    memory,
    memory_account,
    null_duet,
    operators,
    out_of_memory,
    overhead,
    phases,
    ranks,
    scaler,
    tuned,
)
from benchmarks.acceptance.place import Place
from benchmarks.acceptance.row import Row, Skipped

PARTS: dict[str, Callable[[Place], Iterator[Row | Skipped]]] = {
    "blocks": blocks.run,
    "null-duet": null_duet.run,
    "compiled-arm": null_duet.compiled_arm,
    "clock": clock.run,
    "phases": phases.run,
    "arms-in-memory": memory.run,
    "memory": memory_account.run,
    "out-of-memory": out_of_memory.run,
    "scaler": scaler.run,
    "freezes": freezes.run,
    "ranks": ranks.run,
    "operators": operators.run,
    "machine": machine.run,
    "overhead": overhead.run,
    "tune-resnet": tuned.resnet,
    "tune-gpt": tuned.gpt,
    "tune-unet3d": tuned.unet3d,
}
