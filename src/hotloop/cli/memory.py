"""`hotloop memory`: what a program needs on devices that are not here."""

from __future__ import annotations

import os
from pathlib import Path

import click

from hotloop.cli.files import write_json
from hotloop.cli.options import (
    COMMAND_SETTINGS,
    NewScreen,
    ResultFile,
    TimeSpan,
    command_argument,
    isolation_options,
    output_options,
)
from hotloop.cli.preflight import before_run
from hotloop.launch.command import resolve
from hotloop.launch.isolation.decide import Exceptions, check_covered, plan_isolation
from hotloop.launch.isolation.scratch import scratch_root
from hotloop.launch.signals import ended_like_ctrl_c
from hotloop.memory.devices import device_named
from hotloop.memory.plan import plan_for
from hotloop.memory.virtual_report import VirtualReport, Wanted
from hotloop.memory.virtual_run import VirtualMachine, plan_virtually
from hotloop.model.errors import ExitCode
from hotloop.model.memory_plan import PlannedDevice
from hotloop.model.secrets import redacted_words
from hotloop.report.sections.memory_plan import memory_plan
from hotloop.report.terminal import walk
from hotloop.report.terminal.layout import next_steps

DEFAULT_DEVICES = ("T4", "RTX 4090", "A100 40GB", "H100 80GB")
DEFAULT_LIMIT = "5m"


@click.group("memory", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Say what a program needs on devices that are not here.

    \b
        hotloop memory plan --device "A100 40GB" python train.py
    """


@command.command(
    "plan",
    context_settings=COMMAND_SETTINGS,
    epilog='Example: hotloop memory plan --device "A100 40GB" --device 24GB python train.py',
)
@click.option(
    "--device",
    "names",
    multiple=True,
    metavar="NAME",
    help="A device, or its memory: `A100 40GB`, `RTX 4090`, `24GB`. May be given several times.",
)
@click.option(
    "--seconds",
    type=TimeSpan(),
    default=DEFAULT_LIMIT,
    show_default=True,
    help="Time limit of one virtual run.",
)
@click.option("--json", "json_file", type=ResultFile(), help="Write the plan.")
@isolation_options
@output_options
@command_argument
def plan_command(
    *,
    names: tuple[str, ...],
    seconds: float,
    json_file: Path | None,
    exceptions: Exceptions,
    new_screen: NewScreen,
    command: tuple[str, ...],
) -> int:
    """Say how much memory COMMAND needs on some devices, by configuration, and what fits.

    Runs COMMAND, unmodified, on a virtual GPU for a few training steps: its tensors have shapes and no memory, so that
    neither a GPU nor much host memory is needed. What the program writes goes to a scratch folder.
    """
    devices = [device_named(name) for name in names or DEFAULT_DEVICES]
    screen = new_screen()
    before_run(screen, command)
    argv = resolve(command)
    isolation = plan_isolation(argv, Path.cwd(), scratch_root(), network=True, exceptions=exceptions)
    check_covered(isolation, allow_writes=exceptions.all_writes)

    def run(device: PlannedDevice, wanted: Wanted) -> VirtualReport:
        screen.progress(f"on a virtual {device.name}")
        machine = VirtualMachine(
            argv=tuple(argv), isolation=isolation, device=device, cache=_cache(), progress=screen.progress
        )
        return plan_virtually(machine, wanted, limit_s=seconds)

    try:
        with ended_like_ctrl_c():
            plan = plan_for(command, devices, run)
    finally:
        screen.done()
    if json_file is not None:
        write_json(json_file, plan)
    screen.show(walk.render_blocks(tuple(memory_plan(plan))))
    smaller = ["hotloop", "tune", "--goal", "memory", *redacted_words(command)]
    screen.show(next_steps([("what a smaller peak costs, measured on the device", smaller)]))
    return ExitCode.DONE


def _cache() -> Path:
    """Return the folder of the user's for what is compiled once."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hotloop"
