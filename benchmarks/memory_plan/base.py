"""The program as it is on a virtual device, and no other configuration: what a table of peaks needs."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.memory_plan.planned import Planned
from hotloop.cli.memory import _cache
from hotloop.launch.command import resolve
from hotloop.launch.isolation.decide import Exceptions, plan_isolation
from hotloop.launch.isolation.scratch import scratch_root
from hotloop.memory.configurations import AS_IT_IS, PlannedConfiguration
from hotloop.memory.devices import device_named
from hotloop.memory.virtual_report import Wanted
from hotloop.memory.virtual_run import VirtualMachine, plan_virtually
from hotloop.model.errors import HotloopError


def base(
    script: Path,
    arguments: Sequence[str],
    device: str,
    cwd: Path,
    *,
    look_s: float | None,
    limit_s: float = 200,
) -> Planned:
    """Return the peaks of three steps, or of a longer look."""
    os.chdir(cwd)
    argv = resolve((str(script), *arguments))
    isolation = plan_isolation(argv, cwd, scratch_root(), network=True, exceptions=Exceptions())
    machine = VirtualMachine(
        argv=tuple(argv),
        isolation=isolation,
        device=device_named(device),
        cache=_cache(),
        progress=lambda _: None,
    )
    wanted = Wanted(configurations=(PlannedConfiguration(name=AS_IT_IS),), look_s=look_s)
    began = time.monotonic()
    try:
        report = plan_virtually(machine, wanted, limit_s=limit_s)
    except HotloopError as error:
        return Planned(wall_s=time.monotonic() - began, said=error.message)
    peak, look = report.configurations[0], report.look
    allocated, reserved, held = peak.peak_allocated_bytes or 0, peak.peak_reserved_bytes or 0, peak.held
    if look is not None and look.peak_allocated_bytes > allocated:
        allocated, reserved, held = look.peak_allocated_bytes, look.peak_reserved_bytes, look.held
    return Planned(
        wall_s=time.monotonic() - began,
        allocated=allocated,
        reserved=reserved,
        tensors=sum(held.by_class.values()),
        parameters=held.by_class.get("parameters", 0),
        said="; ".join(report.assumptions),
    )
