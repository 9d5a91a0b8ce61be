"""A run of the user's command on a virtual GPU."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from hotloop.launch.environment import probed, quiet
from hotloop.launch.isolation.decide import Isolation, guard_orders
from hotloop.launch.isolation.scratch import new_scratch, remove
from hotloop.launch.process import start
from hotloop.memory.nothing_planned import failed_early, how_it_failed, nothing_planned
from hotloop.memory.virtual_report import VirtualPeak, VirtualReport, Wanted
from hotloop.model.errors import HotloopError
from hotloop.model.memory_plan import PlannedDevice
from hotloop.probe.process.config import ProbeConfig

POLL_S = 0.1
LOG_LINES = 400
"""Of the end of a log: torch lists every backend after some errors."""
NO_TIME = "no time was left (--seconds)"
NO_STEPS = "the program ended before"
HIDDEN = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}
"""A device that is there must not be used."""


class VirtualMachine(msgspec.Struct, frozen=True, kw_only=True):
    """Where and how a command runs virtually.

    Attributes:
        argv: the resolved command.
        isolation: what it is kept from.
        device: whose answers the program gets.
        cache: folder for what is compiled once.
        progress: told which configuration has been planned.
    """

    argv: tuple[str, ...]
    isolation: Isolation
    device: PlannedDevice
    cache: Path
    progress: Callable[[str], None]


def plan_virtually(machine: VirtualMachine, wanted: Wanted, *, limit_s: float) -> VirtualReport:
    """Run the command until every configuration had its steps; one that ends the program is left out, with the reason.

    Args:
        machine: what runs where.
        wanted: what is asked.
        limit_s: for everything together.

    Raises:
        HotloopError: the program failed as it is, took no step, or the virtual GPU cannot be had.
    """
    deadline = time.monotonic() + limit_s
    done: dict[str, VirtualPeak] = {}
    searched = False
    base, todo, known = wanted.configurations[0], list(wanted.configurations[1:]), wanted.known
    while True:
        now = msgspec.structs.replace(wanted, configurations=(base, *todo), look_s=None, known=known)
        try:
            report, failure = _run_once(machine, now, limit_s=deadline - time.monotonic())
        except HotloopError:
            if not done:
                raise
            break
        if not report.configurations:
            return _of_whole_run(report, failure, wanted)
        new = {peak.name: peak for peak in report.configurations if peak.name not in done}
        done |= new
        todo = [each for each in todo if each.name not in done]
        if todo and failure is not None:
            failed = todo.pop(0)
            done[failed.name] = VirtualPeak(name=failed.name, missing=f"the program fails with it{failure}")
        progressed = bool(new) or report.by_batch != known or failure is not None
        known = report.by_batch
        if report.finished or not progressed or deadline - time.monotonic() <= 0:
            break
        if not todo and (failure is not None or searched):
            break  # a batch that was tried ended the program, or it is too short to try many
        searched = not todo
    reason = NO_TIME if deadline - time.monotonic() <= 0 else NO_STEPS
    done |= {each.name: VirtualPeak(name=each.name, missing=reason) for each in todo}
    left_s = deadline - time.monotonic()
    if wanted.look_s is not None and left_s > 0:
        look = msgspec.structs.replace(wanted, configurations=(base,), computed=(), rooms=())
        try:
            seen, failure = _run_once(machine, look, limit_s=left_s)
            report = msgspec.structs.replace(report, look=seen.look, later_failure=failure)
        except HotloopError as error:  # the plan is there without it
            report = msgspec.structs.replace(report, later_failure=f": {error.message}")
    for each in wanted.computed:
        if each.name not in done:
            done[each.name] = VirtualPeak(name=each.name, missing=done[each.of].missing or reason)
    return msgspec.structs.replace(report, configurations=tuple(done[name] for name in wanted.names))


def _of_whole_run(report: VirtualReport, failure: str | None, wanted: Wanted) -> VirtualReport:
    """Return the report on a program that took fewer than three training steps: its peak, and no configurations.

    Raises:
        HotloopError: it failed.
    """
    seen = report.look
    if failure is not None or seen is None:
        raise failed_early(report.num_steps, failure or "")
    base, *others = wanted.names
    missing = f"the program took {report.num_steps} training steps; three are needed"
    peak = VirtualPeak(
        name=base,
        peak_allocated_bytes=seen.peak_allocated_bytes,
        peak_reserved_bytes=seen.peak_reserved_bytes,
        held=seen.held,
    )
    left_out = (VirtualPeak(name=name, missing=missing) for name in others)
    return msgspec.structs.replace(report, configurations=(peak, *left_out), look=seen)


def _run_once(machine: VirtualMachine, wanted: Wanted, *, limit_s: float) -> tuple[VirtualReport, str | None]:
    """Run the command once; return what it reported, and the end of its log if it failed before the end."""
    scratch = new_scratch("memory")
    device = machine.device
    try:
        folder = scratch / "probe"
        folder.mkdir()
        path = scratch / "probe.json"
        order = {
            "device": {
                "name": device.name,
                "capability": device.capability,
                "total_bytes": device.total_bytes,
                "num_processors": device.num_processors,
            },
            "workspace": device.workspace_bytes,
            "cache": str(machine.cache),
            **msgspec.to_builtins(wanted),
        }
        config = ProbeConfig(
            folder=str(folder), record=False, virtual_gpu=order, **guard_orders(machine.isolation, scratch)
        )
        config.save(path)
        environment = probed({**quiet(os.environ, scratch), **HIDDEN}, path)
        run = start(machine.argv, environment, machine.isolation, scratch, log=scratch / "log")
        seen = _Watch(folder, machine.progress)
        try:
            run.wait(seen.is_finished, poll_s=POLL_S, timeout_s=limit_s)
            code = run.exit_code()
        finally:
            run.end()
        _keep_compiled(folder, machine.cache)
        report = seen.report()
        if report is None or not (report.configurations or report.look):
            raise nothing_planned(folder, code, run.log_end(LOG_LINES, report=True), limit_s)
        failed = code not in (None, 0) and not report.finished
        return report, how_it_failed(run.log_end(LOG_LINES, report=True), code) if failed else None
    finally:
        remove(scratch)


def _keep_compiled(folder: Path, cache: Path) -> None:
    """Keep the device guard that a run compiled: the run itself may not write to the cache."""
    for compiled in folder.glob("device-guard-*.so"):
        with contextlib.suppress(OSError):  # without a cache it is compiled again
            cache.mkdir(parents=True, exist_ok=True)
            made = cache / f"{compiled.name}.{os.getpid()}"
            shutil.copyfile(compiled, made)
            made.replace(cache / compiled.name)


class _Watch:
    """Reads the reports as they come."""

    def __init__(self, folder: Path, progress: Callable[[str], None]) -> None:
        self._folder = folder
        self._progress = progress
        self._told = 0

    def report(self) -> VirtualReport | None:
        reports = [
            msgspec.convert(json.loads(path.read_text()), VirtualReport)
            for path in self._folder.glob("virtual-*.json")
        ]
        return max(reports, key=lambda one: (one.num_steps, len(one.configurations)), default=None)

    def is_finished(self) -> bool:
        """Tell what is new; return whether there will be more."""
        report = self.report()
        if report is None:
            return False
        if len(report.configurations) > self._told:
            self._told = len(report.configurations)
            self._progress(f"planned: {report.configurations[-1].name}")
        elif report.look is not None:
            self._progress(f"the program as it is, step {report.look.num_steps}")
        return report.finished
