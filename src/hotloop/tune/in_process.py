"""A plan switched on by the program itself: `import hotloop; hotloop.apply("hotloop.toml")`."""

from __future__ import annotations

import os
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hotloop.probe.process.config import VARIABLE, ProbeConfig
from hotloop.probe.setup.import_hook import when_torch_is_imported
from hotloop.probe.setup.install import install
from hotloop.tune.plan.compatibility import misfits
from hotloop.tune.plan.in_source import in_source, rest_of
from hotloop.tune.plan.orders import activation_orders, with_plan
from hotloop.tune.plan.plan_file import read_plan
from hotloop.tune.plan.plan_folder import folder_of_plan

APPLIED = "HOTLOOP_APPLIED"
"""Set in a process that was started anew with the plan's variables, and in its children."""


def switch_on(path: Path, *, force: bool) -> None:
    """Switch on what a plan holds, in this process, before it makes its loaders, models and optimizers.

    Variables that libraries read when they are loaded (threads, waiting, allocators) need a process of their own: the
    program starts again, once, with the same command line. Under `hotloop observe`, `tune` and `run` the launcher
    decides, and nothing is done here.

    Raises:
        HotloopError: the plan cannot be read.
    """
    if VARIABLE in os.environ:
        return
    plan = read_plan(path)
    differing = misfits(plan.fit, None, _torch_version())
    if differing and not force:
        sys.stderr.write(
            f"hotloop: {path} was proven elsewhere, nothing is switched on: {'; '.join(differing)}\n"
        )
        return
    found = in_source(plan, folder_of_plan(plan, path), sys.argv)
    for line in found.said():
        sys.stderr.write(f"hotloop: {line}\n")
    steps = rest_of(plan, found)
    _start_again_with(with_plan(os.environ, steps))
    config = ProbeConfig(
        folder=None, activations=tuple(activation_orders(steps)), infers=plan.fit.infers, record=False
    )
    when_torch_is_imported(lambda: install(config))


def _torch_version() -> str | None:
    """Return the version of the torch beside us; None: there is none that pip or conda knows of."""
    try:
        return version("torch")
    except PackageNotFoundError:
        return None


def _start_again_with(environment: dict[str, str]) -> None:
    """Start this program again if the variables are not its own; a notebook or a console cannot, and gets them late."""
    if environment == dict(os.environ) or APPLIED in os.environ:
        return
    environment[APPLIED] = str(os.getpid())
    if hasattr(sys, "ps1") or not hasattr(sys.modules["__main__"], "__file__"):
        os.environ.update(environment)
        return
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)
