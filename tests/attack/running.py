"""Run the program of all ways in one set-up, isolated as a trial is."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NamedTuple

from hotloop.launch.environment import probed
from hotloop.launch.isolation.decide import Exceptions, Isolation, guard_orders, plan_isolation
from hotloop.launch.isolation.scratch import new_scratch, remove, scratch_root
from hotloop.launch.process import start
from hotloop.probe.process.config import ProbeConfig
from tests.attack.setups import Setup, snapshot

PROGRAM = Path(__file__).parent / "ways.py"
NOT_REDIRECTED = {"shell", "other_python", "c_library"}
"""What the guard inside Python cannot redirect: denied by the kernel."""
NOT_RENAMED = {"rename_folder"}
"""What the kernel does not let an overlay of an ordinary user do: `EXDEV`."""


class Attack(NamedTuple):
    """What one run did.

    Attributes:
        outcomes: how each way went, for the program.
        differences: what changed for everybody else.
        isolation: what it was kept from.
    """

    outcomes: dict[str, str]
    differences: set[str]
    isolation: Isolation


def attack(setup: Setup, *, writable: tuple[Path, ...] = (), program: Path = PROGRAM) -> Attack:
    before = snapshot(*setup.watched)
    argv = [sys.executable, str(program), setup.folder]
    here = Path.cwd()
    os.chdir(setup.cwd)
    try:
        isolation = plan_isolation(
            argv, setup.cwd, scratch_root(), network=False, exceptions=Exceptions(writable)
        )
        log = _run(argv, isolation)
    finally:
        os.chdir(here)
    after = snapshot(*setup.watched)
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    outcomes = dict(line.split(": ", 1) for line in log.splitlines() if ": " in line)
    return Attack(outcomes, changed, isolation)


def _run(argv: list[str], isolation: Isolation) -> str:
    scratch = new_scratch("attack")
    try:
        config = ProbeConfig(folder=None, record=False, **guard_orders(isolation, scratch))
        config.save(scratch / "probe.json")
        environment = probed(os.environ, scratch / "probe.json")
        run = start(argv, environment, isolation, scratch, log=scratch / "log")
        try:
            run.wait(lambda: False, timeout_s=60)
        finally:
            run.end()
        return (scratch / "log").read_text(errors="replace")
    finally:
        remove(scratch)
