"""What the launcher tells the probe: one environment variable that names a JSON file, or is the JSON itself."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

VARIABLE = "HOTLOOP_PROBE"
COMMAND_PID = "HOTLOOP_COMMAND_PID"
"""The variable that tells a process of a run whether it is the command itself, or was started by it."""


@dataclass(frozen=True)
class ProbeConfig:
    """The probe's orders.

    Attributes:
        folder: scratch folder for events, facts and the control page; None: write nothing (`hotloop run`).
        anchor: `(kind, slot, every)` of the event that ends a step; None: not known yet.
        activations: what to switch on: `{"name", "module", "params"}`, in the plan's order.
        seed: seeds Python, NumPy and torch when torch has been imported; None: the program's own randomness.
        program_seeds: of the program's own, seen when it was observed and given again in a trial; None: not a trial.
        perturb: relative noise put on all parameters once, after the first step; 0: none.
        perturb_number: which draw of that noise, from 1.
        infers: the program trains nothing: activations act on forwards without gradients.
        losses: keep the value of every loss that backward is called on.
        record: time the phases; off for the overhead benchmark and for `hotloop run`.
        lean: short steps may be timed in bursts, so that observing them costs less (see `probe.pace`).
        device_clock: time the phases on the device's own clock too, where the program uses one.
        instruments: the heavy ones that the launcher may ask for: `{"name", "module", "cls", "params", "workers"}`; the
            last is the module that does the same in loader workers.
        whatif: the shape of the blocks in which the knobs among the activations are switched (see `probe.whatif`).
        guard: folders that Python code must not write to, where nothing better protects them.
        guard_free: folders in them that it may write to.
        guard_scratch: where it writes instead.
        memory_reporter: command that tells the user of a program that ran out of memory, where `folder` is None; the
            folder of what is known follows it. Empty: nobody does.
        followers: what shows the events to other tools as they happen, and keeps none: `{"name", "module", "params"}`.
        virtual_gpu: a device that is not there to run on, in place of all else:
            `{"device", "configurations", "workspace", "cache"}`.
        follow_memory: follow every storage from the first one on: the program ran out of memory before.
        memory_snapshot: the instrument of memory also writes a snapshot for torch's viewer, where torch makes one.
        ends_at_bytes: resident size at which a process that is followed ends itself; None: it has no such limit.
        sites: note where the user's code calls what a patch of it has to know.
    """

    folder: str | None
    anchor: tuple[str, int, int] | None = None
    activations: tuple[dict[str, Any], ...] = field(default_factory=tuple)
    seed: int | None = None
    program_seeds: tuple[int, ...] | None = None
    perturb: float = 0.0
    perturb_number: int = 1
    infers: bool = False
    losses: bool = False
    record: bool = True
    lean: bool = True
    device_clock: bool = False
    instruments: tuple[dict[str, Any], ...] = ()
    whatif: dict[str, Any] | None = None
    guard: tuple[str, ...] = ()
    guard_free: tuple[str, ...] = ()
    guard_scratch: str | None = None
    memory_reporter: tuple[str, ...] = ()
    followers: tuple[dict[str, Any], ...] = ()
    follow_memory: bool = False
    memory_snapshot: bool = False
    ends_at_bytes: int | None = None
    sites: bool = False
    virtual_gpu: dict[str, Any] | None = None

    def save(self, path: Path) -> None:
        """Write the orders where `VARIABLE` will point."""
        path.write_text(json.dumps(asdict(self)))

    def inline(self) -> str:
        """Return the orders as the value of `VARIABLE` itself."""
        return json.dumps(asdict(self))


def load() -> ProbeConfig | None:
    """Return this process's orders, or None where there are none."""
    value = os.environ.get(VARIABLE)
    if not value:
        return None
    raw = json.loads(value if value.startswith("{") else Path(value).read_text())
    raw["anchor"] = tuple(raw["anchor"]) if raw["anchor"] else None
    raw["activations"] = tuple(raw["activations"])
    raw["memory_reporter"] = tuple(raw["memory_reporter"])
    raw["followers"] = tuple(raw["followers"])
    raw["instruments"] = tuple(raw["instruments"])
    raw["program_seeds"] = None if raw["program_seeds"] is None else tuple(raw["program_seeds"])
    raw["guard"] = tuple(raw["guard"])
    raw["guard_free"] = tuple(raw["guard_free"])
    return ProbeConfig(**raw)
