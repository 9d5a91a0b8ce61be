"""Measures the rows of the family memory: `python -m benchmarks.memory_rows FOLDER [PROGRAM]`.

Each program runs unmodified with a plan of one step (`hotloop run --plan`): once with every allocation followed for
the peak, once for the step time; the losses are compared with those of the program without a plan.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from hotloop.machine.host.identity import identity
from hotloop.model.observation import SCHEMA
from hotloop.model.tuning import Compatibility, Plan, PlanStep
from hotloop.tune.plan.plan_file import to_toml

HERE = Path(__file__).parent
BATCH_NORM, GROUP_NORM, NO_DROPOUT = {"NORM": "batch"}, {"NORM": "group"}, {"DROPOUT": "0"}
Steps = dict[str, dict[str, Any]]
CASES: list[tuple[str, dict[str, str], Steps]] = [
    ("gpt", {}, {}),
    ("gpt", {}, {"activation_checkpointing": {"blocks": ["blocks"]}}),
    ("gpt", {}, {"activation_checkpointing": {"blocks": "half"}}),
    ("gpt", {}, {"chunked_cross_entropy": {}}),
    ("gpt", {}, {"activation_checkpointing": {"blocks": ["blocks"]}, "chunked_cross_entropy": {}}),
    ("gpt", NO_DROPOUT, {}),
    ("gpt", NO_DROPOUT, {"gradient_accumulation": {"micro_batches": 4}}),
    ("unet", BATCH_NORM, {}),
    ("unet", BATCH_NORM, {"activation_checkpointing": {"blocks": "all"}}),
    ("unet", BATCH_NORM, {"activation_checkpointing": {"blocks": "half"}}),
    ("unet", GROUP_NORM, {}),
    ("unet", GROUP_NORM, {"gradient_accumulation": {"micro_batches": 4}}),
]


def _plan(folder: Path, steps: Steps) -> Path:
    fit = Compatibility(
        machine=msgspec.to_builtins(identity()),
        torch_version=version("torch"),
        script=None,
        script_sha256=None,
        command=("python",),
    )
    made = tuple(
        PlanStep(name=name, params=params, ratio=1.0, low=1.0, high=1.0) for name, params in steps.items()
    )
    path = folder / "plan.toml"
    path.write_text(to_toml(Plan(steps=made, speedup=None, parity=None, fit=fit, schema=SCHEMA)))
    return path


def _run(command: list[str], setting: dict[str, str]) -> str:
    done = subprocess.run(command, env={**os.environ, **setting}, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout[-2000:] + done.stderr[-3000:])
    return done.stdout


def _told(output: str, word: str) -> Any:
    line = next(line for line in output.splitlines() if line.startswith(word))
    return ast.literal_eval(line.removeprefix(word).strip())


def main(folder: Path, programs: list[str]) -> None:
    """Print a row of a Markdown table for each case."""
    before: dict[str, Any] = {}
    for program, setting, steps in CASES:
        if programs and program not in programs:
            continue
        script = str(HERE / "programs" / f"{program}.py")
        start = [sys.executable, "-m", "hotloop", "run", "--force", "--plan", str(_plan(folder, steps))]
        begin = [*start, sys.executable] if steps else [sys.executable]
        peak = _told(_run([*begin, str(HERE / "tracked.py"), script], {**setting, "STEPS": "4"}), "PEAK")
        result = _told(_run([*begin, script], setting), "RESULT")
        if not steps:
            before = {"peak": peak, **result}
        apart = max(abs(one - other) for one, other in zip(before["losses"], result["losses"], strict=True))
        print(
            f"| {program} {' '.join(setting.values())} | {' + '.join(steps) or 'as it is'} "
            f"{'; '.join(str(each) for one in steps.values() for each in one.values())} "
            f"| {peak / 2**20:.1f} MiB | {peak / before['peak']:.2f} "
            f"| {result['step_s'] * 1e3:.0f} ms | {result['step_s'] / before['step_s']:.2f} | {apart:.1e} |",
            flush=True,
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
