"""One program through the plan, through the tally on the CPU, and through the other estimators."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.memory_plan.planned import Planned

LIMIT_S = 240.0


def plan(
    script: Path, arguments: Sequence[str], device: str, *, seconds: float, cwd: Path | None = None
) -> Planned:
    """Run `hotloop memory plan`."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "plan.json"
        words = ["--device", device, "--seconds", f"{seconds:g}", "--json", str(out)]
        began = time.monotonic()
        command = [sys.executable, "-m", "hotloop", "memory", "plan", *words, str(script), *arguments]
        done = _run(command, cwd or Path(folder))
        wall_s = time.monotonic() - began
        if not out.exists():
            said = [line for line in done.splitlines() if line.startswith("hotloop: the ")]
            return Planned(wall_s=wall_s, said=(said or [done[-200:]])[-1].removeprefix("hotloop: "))
        found: dict[str, Any] = json.loads(out.read_text())
    base = found["peaks"][0]
    held = base["held"]["by_class"]
    return Planned(
        wall_s=wall_s,
        allocated=base["allocated"]["num_bytes"],
        reserved=base["reserved"]["num_bytes"],
        tensors=sum(held.values()),
        parameters=held.get("parameters", 0),
        missing=sum(peak["missing"] is not None for peak in found["peaks"]),
        said="; ".join(found["assumptions"]),
        largest=next((each["batch_size"] for each in found["largest_batches"]), None),
    )


def last_number(module: str, script: Path, arguments: Sequence[str], cwd: Path | None = None) -> int | str:
    """Run a program under a counting module of this folder; return the bytes that it prints, or why it does not."""
    with tempfile.TemporaryDirectory() as folder:
        said = _run(
            [sys.executable, "-m", f"benchmarks.memory_plan.{module}", str(script), *arguments],
            cwd or Path(folder),
        )
    lines = [line for line in said.splitlines() if line.startswith("peak of ")]
    if not lines:
        return (said.strip().splitlines() or ["nothing printed"])[-1]
    value = lines[-1].partition(": ")[2]
    return int(value) if value.isdigit() else value


def accelerate(parameters: float, params_bytes: int) -> float:
    """Return accelerate's `estimate-memory` for training: the largest of its four figures."""
    from accelerate.commands.estimate import estimate_training_usage

    kind = "float32" if params_bytes == 4 else "bfloat16"
    return float(max(estimate_training_usage(int(parameters * 4), kind).values()))


def zero(parameters: float) -> float:
    """Return DeepSpeed's `estimate_zero2_model_states_mem_needs` for one GPU without offloading.

    deepspeed/runtime/zero/stage_1_and_2.py: 4 bytes a parameter, and 16 divided by the number of GPUs.
    """
    return 20 * parameters


def sixteen(parameters: float) -> float:
    """Return sixteen bytes a parameter: weights, gradients and two states in fp32."""
    return 16 * parameters


def _run(command: list[str], cwd: Path) -> str:
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": root, "COLUMNS": "200"}
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {LIMIT_S:.0f} s"
    return done.stdout + done.stderr
