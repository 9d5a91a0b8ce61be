"""`hotloop tune` on programs as people publish them: it ends well and touches nothing; speed is not asserted."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = Path(__file__).parents[1] / "programs"
BIN = Path(sys.executable).parent
ENDLESS = "1000000"
OURS = (".hotloop", "hotloop.toml", "out.json")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

CASES = {
    "plain loop with evaluation": ["cnn_epochs.py", "--epochs", ENDLESS, "--steps", ENDLESS],
    "sliced array and micro-steps": ["nanogpt/train.py", "nanogpt/config/tiny.py", f"--steps={ENDLESS}"],
    "GAN": ["dcgan.py", "--steps", ENDLESS],
    "LBFGS": ["lbfgs.py", "--steps", ENDLESS],
    "reinforcement learning": ["ppo.py", "--steps", ENDLESS],
    "no optimizer object": ["word_language_model.py", "--epochs", ENDLESS, "--steps", ENDLESS],
    "Lightning": ["lightning_module.py", "--steps", ENDLESS],
    "Hugging Face Trainer": ["hf_trainer.py", "--steps", ENDLESS],
    "accelerate with accumulation": ["accelerate_loop.py", "--steps", ENDLESS],
    "torchrun": [str(BIN / "torchrun"), "--nproc-per-node", "2", "ddp_torchrun.py", "--steps", ENDLESS],
    "spawned ranks on a fixed port": ["ddp_spawn.py", "--steps", ENDLESS],
    "shared model, forked trainers": ["hogwild.py", "--steps", ENDLESS],
}


@pytest.mark.parametrize("name", CASES)
def test_tune_ends_well_and_touches_nothing(name: str, tmp_path: Path) -> None:
    shutil.copytree(PROGRAMS, tmp_path / "p", ignore=shutil.ignore_patterns("__pycache__", "runs"))
    folder = tmp_path / "p"
    before = tree(folder)
    wishes = ("--only", "fused_optimizer,openmp_wait_policy,autocast_bf16")
    done = tune(folder, CASES[name], "30s", *wishes)
    if "before your program had taken two steps" in done.stderr:  # so busy a machine
        shutil.rmtree(folder / ".hotloop", ignore_errors=True)
        done = tune(folder, CASES[name], "120s", *wishes)
    assert done.returncode == 0, done.stderr[-3000:]
    assert tree(folder) == before
    assert len(list((folder / ".hotloop").glob("*.html"))) == 1, done.stderr[-3000:]
    check_result(json.loads((folder / "out.json").read_text()))


def tune(folder: Path, command: list[str], budget: str, *options: str) -> subprocess.CompletedProcess[str]:
    words = [
        sys.executable,
        "-m",
        "hotloop",
        "tune",
        "--budget",
        budget,
        "--json",
        "out.json",
        *options,
        *command,
    ]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=500)


def tree(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.relative_to(folder).parts[0] not in OURS
    }


def check_result(result: dict[str, Any]) -> None:
    assert result["baseline"]["step_s"] > 0
    # Half a minute may end before the program was run against itself.
    assert result["floor"] is None or result["floor"] > 0
    named = {refusal["name"].split("(")[0] for refusal in result["refused"]}
    planned = {step["name"] for step in result["plan"]["steps"]}
    assert {"fused_optimizer", "openmp_wait_policy", "autocast_bf16"} <= named | planned
    assert all(refusal["reason"] for refusal in result["refused"])
    if planned:
        speedup = result["plan"]["speedup"]
        assert speedup["low"] > 1
        assert math.prod(step["ratio"] for step in result["plan"]["steps"]) == pytest.approx(speedup["ratio"])
        assert result["plan"]["parity"]["passed"]
    else:
        assert result["plan"]["speedup"] is None
