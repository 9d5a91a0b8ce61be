"""A run of the user's command on a virtual GPU."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from hotloop.launch.environment import probed, quiet
from hotloop.launch.isolation.decide import Isolation, guard_orders
from hotloop.launch.isolation.scratch import new_scratch, remove
from hotloop.launch.log_tail import last_words
from hotloop.launch.process import start
from hotloop.memory.configurations import PlannedConfiguration
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.memory_plan import Held, PlannedDevice
from hotloop.probe.process.config import ProbeConfig

POLL_S = 0.1
NO_TIME = "no time was left (--seconds)"
HIDDEN = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}
"""A device that is there must not be used."""


class VirtualPeak(msgspec.Struct, frozen=True, kw_only=True):
    """What one configuration gave."""

    name: str
    missing: str | None = None
    peak_allocated_bytes: int | None = None
    peak_reserved_bytes: int | None = None
    held: Held = Held()


class VirtualReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a training process wrote (`probe.virtual_gpu.steps`)."""

    configurations: tuple[VirtualPeak, ...] = ()
    assumptions: tuple[str, ...] = ()
    batch_size: int | None = None


def plan_virtually(
    argv: Sequence[str],
    isolation: Isolation,
    device: PlannedDevice,
    wanted: Sequence[PlannedConfiguration],
    *,
    cache: Path,
    limit_s: float,
    progress: Callable[[str], None],
) -> VirtualReport:
    """Run the command until every configuration had its steps; one that ends the program is left out, with the reason.

    Args:
        argv: the resolved command.
        isolation: what it is kept from.
        device: whose answers the program gets.
        wanted: the configurations, the program as it is first.
        cache: folder for what is compiled once.
        limit_s: for everything together.
        progress: told which configuration has been planned.

    Raises:
        HotloopError: the program failed as it is, took no step, or the virtual GPU cannot be had.
    """
    deadline = time.monotonic() + limit_s
    done: dict[str, VirtualPeak] = {}
    base, todo = wanted[0], list(wanted[1:])
    while True:
        left_s = deadline - time.monotonic()
        report, failure = _run_once(
            argv, isolation, device, [base, *todo], cache=cache, limit_s=left_s, progress=progress
        )
        done |= {peak.name: peak for peak in report.configurations if peak.name not in done}
        todo = [each for each in todo if each.name not in done]
        if todo and failure is not None:
            failed = todo.pop(0)
            done[failed.name] = VirtualPeak(name=failed.name, missing=f"the program fails with it{failure}")
        if not todo:
            break
        if deadline - time.monotonic() <= 0 or failure is None:
            done |= {each.name: VirtualPeak(name=each.name, missing=NO_TIME) for each in todo}
            break
    return msgspec.structs.replace(report, configurations=tuple(done[each.name] for each in wanted))


def _run_once(
    argv: Sequence[str],
    isolation: Isolation,
    device: PlannedDevice,
    wanted: Sequence[PlannedConfiguration],
    *,
    cache: Path,
    limit_s: float,
    progress: Callable[[str], None],
) -> tuple[VirtualReport, str | None]:
    """Run the command once; return what it reported, and the end of its log if it failed before the last one."""
    scratch = new_scratch("memory")
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
            "configurations": [msgspec.to_builtins(each) for each in wanted],
            "workspace": device.workspace_bytes,
            "cache": str(cache),
        }
        config = ProbeConfig(
            folder=str(folder), record=False, virtual_gpu=order, **guard_orders(isolation, scratch)
        )
        config.save(path)
        environment = probed({**quiet(os.environ, scratch), **HIDDEN}, path)
        run = start(argv, environment, isolation, scratch, log=scratch / "log")
        seen = _Watch(folder, progress)
        try:
            run.wait(lambda: seen.num() >= len(wanted), poll_s=POLL_S, timeout_s=limit_s)
            code = run.exit_code()
        finally:
            run.end()
        report = seen.report()
        if report is None or not report.configurations:
            raise _nothing(folder, code, last_words(run.log_end()), limit_s)
        failed = code not in (None, 0) and len(report.configurations) < len(wanted)
        return report, f": {last_words(run.log_end()) or f'exit code {code}'}" if failed else None
    finally:
        remove(scratch)


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
        return max(reports, key=lambda one: len(one.configurations), default=None)

    def num(self) -> int:
        report = self.report()
        num = len(report.configurations) if report is not None else 0
        if report is not None and num > self._told:
            self._told = num
            self._progress(f"planned: {report.configurations[-1].name}")
        return num


def _nothing(folder: Path, code: int | None, last: str, limit_s: float) -> HotloopError:
    """Return why nothing was planned."""
    for path in folder.glob("virtual-failed-*"):
        return HotloopError(
            f"the memory of a device that is not here cannot be planned: {path.read_text()}",
            "plan it where the program's environment has torch for CUDA, or a C++ compiler",
            ExitCode.MACHINE,
        )
    if code is None:
        return HotloopError(
            f"the program took no training step on the virtual GPU within {limit_s:.0f} s",
            "give it more time: --seconds",
            ExitCode.PROGRAM_FAILED,
        )
    said = f": {last}" if last else ""
    return HotloopError(
        f"the program ended on the virtual GPU with exit code {code}, before its third step{said}",
        "run it as you do, to see that it trains; on the virtual GPU values on the device are not known",
        ExitCode.PROGRAM_FAILED,
    )
