"""Patch the test programs with every rewrite that applies, and run them where hotloop cannot be imported.

python -m benchmarks.patch.on_programs [NAME...]: prints a Markdown table. Speed is not measured here.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hotloop.launch.deadline import Deadline
from hotloop.model.errors import HotloopError
from hotloop.model.safety import Safety
from hotloop.model.tuning import PlanStep
from hotloop.observe.run.observe_command import LiveRun, observe
from hotloop.observe.run.stopping import StopRule
from hotloop.patch.program_files import editable
from hotloop.patch.rewrite_plan import Patch, rewrite_plan
from hotloop.source.outcome import AlreadySo, Edited

PROGRAMS = Path(__file__).parents[2] / "tests" / "programs"
COMMANDS = {
    "cnn_epochs": "cnn_epochs.py --steps 12",
    "mlp_fast": "mlp_fast.py --steps 200",
    "convnet_100ms": "convnet_100ms.py --steps 12",
    "nanogpt": "nanogpt/train.py nanogpt/config/tiny.py --steps=12",
    "dcgan": "dcgan.py --steps 12",
    "lbfgs": "lbfgs.py --steps 3",
    "reinforce_deepcopy": "reinforce_deepcopy.py --steps 20",
    "vae": "vae.py --steps 20",
    "gcn": "gcn.py --steps 20",
    "siamese": "siamese.py --steps 20",
    "unet3d": "unet3d.py --steps 6",
    "jpeg_images": "jpeg_images.py --steps 12",
    "text_padding": "text_padding.py --steps 20",
    "lightning_module": "lightning_module.py --steps 20",
    "fabric_train": "fabric_train.py --steps 20",
    "hf_trainer": "hf_trainer.py --steps 12",
    "hf_gpt2": "hf_gpt2.py --steps 6",
    "accelerate_loop": "accelerate_loop.py --steps 20",
    "package_layout": "-m pkg.train --steps 30",
    "flat_layout": "flat_layout/train.py --steps 20",
    "anomaly_rows": "anomaly_rows.py --steps 12",
    "remakes_loaders": "remakes_loaders.py --steps 40",
    "ema_checkpointing": "ema_checkpointing.py --steps 20",
    "pickles_model": "pickles_model.py --steps 40",
    "bce_sigmoid": "bce_sigmoid.py --steps 20",
    "schedulers": "schedulers.py --steps 30",
    "tied_weights": "tied_weights.py --steps 20",
    "word_language_model": "word_language_model.py --steps 12 --epochs 1",
}
STEPS: dict[str, dict[str, Any]] = {
    "loader_workers": {"num_workers": 1},
    "fused_optimizer": {"implementation": "fused"},
    "autocast_bf16": {},
    "channels_last": {},
    "channels_last_3d": {},
    "compile": {"mode": "default"},
    "debug_apis_off": {},
    "tf32_matmul": {},
    "kernel_autotune": {},
}
LIMIT_S = 240


def main(names: list[str]) -> None:
    """Print one row for each program."""
    print("| program | " + " | ".join(STEPS) + " | runs alone |")
    print("|---|" + "---|" * (len(STEPS) + 1))
    for name in names or COMMANDS:
        print(f"| {name} | {' | '.join(_row(name))} |", flush=True)


def _row(name: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as scratch, _inside(Path(scratch), name) as words:
        live = LiveRun(
            words=words, rule=StopRule(steps=3), log=Path(scratch) / "log", deadline=Deadline(LIMIT_S)
        )
        try:
            sites = observe(live, lambda _: None).sites
        except HotloopError as error:
            yield from ("", *[""] * (len(STEPS) - 1), f"not observed: {error.message}")
            return
        files = editable(sites, Path.cwd(), words)
        plan = [PlanStep(name=step, params=params, ratio=1, low=1, high=1) for step, params in STEPS.items()]
        patch = rewrite_plan(plan, sites, files, Safety.UNSAFE)
        yield from (_word(each.outcome) for each in patch.outcomes)
        yield _runs(patch, words)


def _word(outcome: object) -> str:
    if isinstance(outcome, Edited):
        return f"{len(outcome.notes)}"
    return "so" if isinstance(outcome, AlreadySo) else f"no: {outcome.reason}"  # type: ignore[attr-defined]


def _runs(patch: Patch, words: tuple[str, ...]) -> str:
    for path in patch.changed:
        Path(path).write_bytes(patch.after[path])
    blocker = Path("nowhere")
    blocker.mkdir()
    (blocker / "hotloop.py").write_text("raise ImportError('hotloop is not installed here')\n")
    environment = {**os.environ, "PYTHONPATH": str(blocker.resolve()), "TORCHDYNAMO_DISABLE": "1"}
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, env=environment, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return "no: too slow"
    last = (done.stderr.strip().splitlines() or [""])[-1]
    return "yes" if done.returncode == 0 else f"no: {last}"


@contextlib.contextmanager
def _inside(scratch: Path, name: str) -> Iterator[tuple[str, ...]]:
    """Change to a copy of the programs; return the command."""
    before = Path.cwd()
    shutil.copytree(PROGRAMS, scratch / "programs", ignore=shutil.ignore_patterns("runs", "__pycache__"))
    os.chdir(scratch / "programs" / (name if name == "package_layout" else ""))
    try:
        yield (sys.executable, *COMMANDS[name].split())
    finally:
        os.chdir(before)


if __name__ == "__main__":
    main(sys.argv[1:])
