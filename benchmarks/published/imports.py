"""Import every public module of torch, and packages that build on it, alone and under `hotloop observe`.

    python -m benchmarks.published.imports [--site DIR]

DIR holds packages that are not installed here, as in `benchmarks.published`. Both must end the same, module by module.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.tune.page import write

PACKAGES = (
    "transformers", "lightning", "pytorch_lightning", "accelerate", "torchmetrics", "datasets", "timm", "ignite",
    "monai", "einops", "torchvision", "safetensors", "tokenizers", "huggingface_hub", "tensorboard", "gymnasium",
    "sklearn", "scipy", "pandas", "matplotlib", "onnx", "lightning.fabric", "transformers.trainer", "peft", "kornia",
    "torch_geometric", "sentence_transformers", "torchtune", "skorch", "pytorch_metric_learning", "gpytorch",
    "segmentation_models_pytorch",
)  # fmt: skip
MARK = "imported: "
PROGRAM = """
import importlib, json, pkgutil, sys, warnings

def public(name):
    return not any(part.startswith('_') or part == '__main__' for part in name.split('.'))

def outcome(name):
    try:
        module = importlib.import_module(name)
    except BaseException as error:
        return f'{type(error).__name__}: {str(error)[:120]}'
    return sorted(attribute for attribute in vars(module) if not attribute.startswith('_'))

warnings.simplefilter('ignore')
import torch

names = [found.name for found in pkgutil.walk_packages(torch.__path__, 'torch.', onerror=lambda _: None)]
torchs = {name: outcome(name) for name in names if public(name)}
others = {name: outcome(name) for name in json.loads(sys.argv[1])}
for step in range(4):  # so that there is something to observe
    torch.ones(2, requires_grad=True).sum().backward()
print('MARK' + json.dumps([torchs, others]))
""".replace("MARK", MARK)


def imported(argv: list[str], environment: dict[str, str]) -> list[dict[str, object]]:
    """Run the program and return what each import came to."""
    done = subprocess.run(
        argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    line = next((line for line in done.stdout.splitlines() if line.startswith(MARK)), None)
    if line is None:
        raise SystemExit(
            f"the program ended early ({done.returncode})\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    found: list[dict[str, object]] = json.loads(line.removeprefix(MARK))
    return found


def main() -> int:
    """Compare, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--site", type=Path)
    args = parser.parse_args()
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    if args.site is not None:
        environment["PYTHONPATH"] = str(args.site.resolve())
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "imports_everything.py"
        script.write_text(PROGRAM)
        command = [sys.executable, str(script), json.dumps(PACKAGES)]
        alone = imported(command, environment)
        observed = imported([sys.executable, "-m", "hotloop", "observe", "--full", *command], environment)
    lines, differing = [], 0
    for what, without, probed in zip(("modules of torch", "packages"), alone, observed, strict=True):
        there = {name: value for name, value in without.items() if isinstance(value, list)}
        other = [name for name in without if without[name] != probed.get(name)]
        differing += len(other)
        lines.append(
            f"- {what}: {len(there)} import alone, {len(without) - len(there)} do not; {len(other)} of all "
            f"{len(without)} differ under `hotloop observe`, in their public names or their error"
        )
        lines.extend(f"  - {name}: {without[name]} / {probed.get(name)}" for name in other)
    imports = [name for name, value in alone[1].items() if isinstance(value, list)]
    write(
        "imports",
        "Imports with and without hotloop",
        [*lines, "", f"Packages that import: {', '.join(imports)}."],
    )
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
