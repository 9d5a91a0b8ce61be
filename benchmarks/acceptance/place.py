"""Where a part runs: the device, the sizes, and the two ways of running a program: by hand and held by hotloop."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from hotloop.launch.isolation.decide import Exceptions, Isolation, plan_isolation
from hotloop.launch.isolation.scratch import scratch_root
from hotloop.model.observation import Anchor, Observation
from hotloop.model.optimization import Candidate
from hotloop.observe.run.observe_command import LiveRun, observe
from hotloop.observe.run.stopping import StopRule
from hotloop.probe.control.control_page import GO_UNTIL, UNLIMITED
from hotloop.tune.design.block_length import Blocks
from hotloop.tune.executor import Rounds, SetOrder
from hotloop.tune.trials.arm import Arm
from hotloop.tune.trials.arm_processes import ArmProcesses
from hotloop.tune.trials.duet import DuetExecutor
from hotloop.tune.trials.setting import Setting

PROGRAM = Path(__file__).parent / "programs" / "train.py"
FOLDER = "ACCEPTANCE_FOLDER"
"""The variable that tells programs where their truth goes."""
ANCHOR = Anchor("optimizer", 0, 1)


def both(_: Rounds) -> Collection[int]:
    """Two arms go on until their rounds are over."""
    return (0, 1)


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A device and a folder.

    Attributes:
        device: `cuda` or `cpu`.
        folder: for truths and results; removed in the end.
    """

    device: str
    folder: Path

    @property
    def on_gpu(self) -> bool:
        """Whether the device is a GPU."""
        return self.device == "cuda"

    def size(self, large: int, small: int) -> int:
        """Return the number for a GPU, or for a CPU."""
        return large if self.on_gpu else small

    def command(self, model: str, *words: str, truth: str | None = None) -> list[str]:
        """Return the program's command."""
        told = ["--truth", truth] if truth else []
        return [sys.executable, str(PROGRAM), model, "--device", self.device, *told, *words]

    def truth(self, name: str) -> dict[str, Any]:
        """Return what a program wrote at its end."""
        found: dict[str, Any] = json.loads((self.folder / name).read_text())
        return found

    def by_hand(self, model: str, *words: str, **variables: str) -> dict[str, Any]:
        """Run the program as a user does, without hotloop; return its truth."""
        environment = {**os.environ, **variables}
        command = self.command(model, *words, truth="by-hand.json")
        subprocess.run(
            command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        return self.truth("by-hand.json")

    def hotloop(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of hotloop's."""
        return subprocess.run(
            [sys.executable, "-m", "hotloop", *words],
            check=False, cwd=self.folder, capture_output=True, text=True,
        )  # fmt: skip

    def observe(self, model: str, *words: str, seconds: float, deep: tuple[str, ...] = ()) -> Observation:
        """Return what hotloop observes of the program within a time."""
        return self._observe(
            self.command(model, "--steps", str(10**9), *words), StopRule(seconds=seconds), deep
        )

    def observe_whole(self, model: str, *words: str, truth: str) -> Observation:
        """Return what hotloop observes of a whole run, which writes its truth."""
        return self._observe(self.command(model, *words, truth=truth), StopRule(full=True))

    def _observe(self, command: list[str], rule: StopRule, deep: tuple[str, ...] = ()) -> Observation:
        live = LiveRun(
            words=tuple(command),
            rule=rule,
            log=self.folder / "log",
            deep=deep,
            exceptions=Exceptions(writable=(self.folder,)),
        )
        return observe(live, lambda _: None)

    @contextmanager
    def executor(
        self, argv: Sequence[str], blocks: Blocks, observation: Observation | None = None
    ) -> Iterator[tuple[DuetExecutor, ArmProcesses]]:
        """Give what runs trials of a command, and what handles their arms."""
        isolation = plan_isolation(argv, self.folder, scratch_root(), network=True)
        # The program writes its truth, which an isolation of files would keep from us.
        setting = Setting(
            argv=tuple(argv),
            environment=dict(os.environ),
            isolation=Isolation(network=isolation.network),
            anchor=ANCHOR,
            num_ranks=1,
            step_s=1.0,
            startup_s=60.0,
            peak_bytes=None,
            devices=observation.memory.devices if observation else (),
        )
        crew = ArmProcesses(setting, blocks, left_s=lambda: math.inf)
        runner = DuetExecutor(setting, blocks, lambda _: None, crew=crew)
        try:
            yield runner, crew
        finally:
            runner.close()

    @contextmanager
    def arm(self, argv: Sequence[str], plan: tuple[Candidate, ...] = ()) -> Iterator[Arm]:
        """Give a program that runs as an arm of a trial does."""
        blocks = Blocks(num_steps=1, discard=1, warm_steps=1, max_rounds=None)
        with self.executor(argv, blocks) as (_, crew):
            yield crew.start(SetOrder(plans=(plan,), max_rounds=1), 0)


def let_end(arm: Arm, timeout_s: float = 120.0) -> None:
    """Let a held program run to its own end."""
    arm.page.numbers[GO_UNTIL] = UNLIMITED
    arm.run.thaw()
    arm.run.wait(lambda: arm.run.exit_code() is not None, timeout_s=timeout_s)


@contextmanager
def place(device: str) -> Iterator[Place]:
    """Give a place."""
    with tempfile.TemporaryDirectory(prefix="hotloop-acceptance-") as folder:
        os.environ[FOLDER] = folder
        yield Place(device=device, folder=Path(folder))
