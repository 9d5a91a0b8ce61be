"""`python -m benchmarks.account`: the programs of tests/programs, run to their ends under `observe --full`.

What was measured is appended to a file as each program ends, so that the benchmark can be ended and go on; the page
is written when all have been run. `--slice SECONDS` ends it after so long.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.account.page import page
from benchmarks.tune.page import write

PROGRAMS = Path(__file__).parents[2] / "tests" / "programs"
COMMANDS = (
    "cnn_epochs.py --steps 60",
    "mlp_fast.py --steps 1500",
    "convnet_100ms.py --steps 40",
    "nanogpt/train.py nanogpt/config/tiny.py --steps=30",
    "word_language_model.py --steps 80 --epochs 1",
    "dcgan.py --steps 30",
    "wgan_gp.py --steps 90",
    "lbfgs.py --steps 5",
    "ppo.py --steps 6",
    "reinforce_deepcopy.py --steps 80",
    "vae.py --steps 120",
    "gcn.py --steps 80",
    "siamese.py --steps 80",
    "unet3d.py --steps 8",
    "jpeg_images.py --steps 40",
    "text_padding.py --steps 60",
    "lightning_module.py --steps 120",
    "fabric_train.py --steps 120",
    "hf_trainer.py --steps 40",
    "hf_gpt2.py --steps 8",
    "accelerate_loop.py --steps 60",
    "torchrun --nproc-per-node 2 ddp_torchrun.py --steps 20",
    "ddp_spawn.py --steps 100",
    "hogwild.py --steps 20",
    "flat_layout/train.py --steps 80",
    "remakes_loaders.py --steps 300",
    "next_iter.py --steps 100",
    "user_compile.py --steps 60 --backend aot_eager",
    "ema_checkpointing.py --steps 40",
    "pickles_model.py --steps 150",
    "inference_only.py --steps 80",
    "schedulers.py --steps 120",
    "anomaly_rows.py --steps 30",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=Path, default=Path(tempfile.gettempdir()) / "hotloop-account.jsonl")
    parser.add_argument("--slice", type=float, default=float("inf"), metavar="SECONDS")
    parser.add_argument("--page", action="store_true", help="write the page of what has been run so far")
    options = parser.parse_args()
    known = {row["command"] for row in _rows(options.rows)}
    begin_s = time.monotonic()
    for command in COMMANDS:
        if command in known:
            continue
        if time.monotonic() - begin_s > options.slice or options.page:
            break
        with options.rows.open("a") as file:
            file.write(json.dumps(_observe(command)) + "\n")
    rows = _rows(options.rows)
    if options.page or len(rows) == len(COMMANDS):
        write("account", "What whole runs are accounted for by name", page(rows))


def _rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _observe(command: str) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        seen = Path(folder) / "seen.json"
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "hotloop",
                "observe",
                "--full",
                "--quiet",
                "--json",
                seen,
                *command.split(),
            ],
            cwd=PROGRAMS,
            capture_output=True,
            text=True,
            check=False,
        )
        run = json.loads(seen.read_text())["run"] if seen.exists() else None
    return {"command": command, "code": done.returncode, "run": run, "error": done.stderr[-300:]}


if __name__ == "__main__":
    main()
