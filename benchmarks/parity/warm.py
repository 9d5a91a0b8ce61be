"""Runs of programs in children of a process that has imported torch: a run costs its steps, not its imports."""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import runpy
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from benchmarks.parity.programs import Program
from hotloop.model.learned import Learned, TrainingInvariants
from hotloop.model.optimization import Candidate
from hotloop.observe.decode.processes import read_processes
from hotloop.probe.process.config import VARIABLE, ProbeConfig
from hotloop.tune.plan.orders import activation_orders
from hotloop.tune.trials.start_arm import SEED

TIMEOUT_S = 120


class Curves(msgspec.Struct, frozen=True):
    """What a run left: its losses, the place of the backward call of each, and what its first steps did."""

    stored: tuple[float | None, ...] = msgspec.field(name="losses")
    """JSON has no number that is none: None."""
    sites: tuple[int, ...]
    invariants: TrainingInvariants | None = None

    @property
    def losses(self) -> tuple[float, ...]:
        """The losses as numbers."""
        return tuple(math.nan if loss is None else loss for loss in self.stored)

    @property
    def learned(self) -> Learned:
        """What the run is judged by."""
        return Learned(losses=self.losses, invariants=self.invariants)


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What is different in a run."""

    plan: tuple[Candidate, ...] = ()
    before: Callable[[], None] | None = None
    """Called in the child, after the probe is in and before the program starts."""
    environment: Mapping[str, str] = {}
    perturb: float = 0.0
    perturb_number: int = 1
    seed: int = SEED


def run(program: Program, change: Change) -> Curves:
    """Run the program to its end in a child; a failed one has the losses that it came to."""
    folder = Path(tempfile.mkdtemp(prefix="parity-"))
    try:
        (folder / "probe").mkdir()
        pid = os.fork()
        if pid == 0:
            _child(folder, program, change)
        os.waitpid(pid, 0)
        return _curves(folder / "probe")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _child(folder: Path, program: Program, change: Change) -> None:
    code = 1
    try:
        signal.alarm(TIMEOUT_S)
        os.chdir(folder)
        with (folder / "log").open("wb") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        config = ProbeConfig(
            folder=str(folder / "probe"),
            anchor=(program.anchor, 0, 1),
            activations=tuple(activation_orders(change.plan)),
            seed=change.seed,
            program_seeds=(),
            perturb=change.perturb,
            perturb_number=change.perturb_number,
            losses=True,
            lean=False,
        )
        os.environ.update({**change.environment, VARIABLE: config.inline()})
        from hotloop.probe.setup.install import start

        start()
        if change.before is not None:
            change.before()
        script = program.path
        sys.argv = [str(script), *program.words]
        sys.path.insert(0, str(script.parent))
        runpy.run_path(str(script), run_name="__main__")
        code = 0
    except SystemExit as end:
        code = int(end.code or 0) if isinstance(end.code, (int, type(None))) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            atexit._run_exitfuncs()
        os._exit(code)


def _curves(folder: Path) -> Curves:
    pairs: Any = np.zeros((0, 2))
    for path in folder.glob("losses-*.bin"):
        found = np.fromfile(path).reshape(-1, 2)
        pairs = max(pairs, found, key=len)
    raw = [facts.get("invariants") for facts in read_processes(folder).values()]
    seen = msgspec.convert([one for one in raw if one], list[TrainingInvariants])
    return Curves(
        stored=tuple(pairs[:, 1].tolist()),
        sites=tuple(int(site) for site in pairs[:, 0]),
        invariants=max(seen, key=lambda one: one.num_forwards, default=None),
    )
