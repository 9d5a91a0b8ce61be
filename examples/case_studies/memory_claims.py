"""Case study 2: claims about the memory of a model of 7 billion parameters, beside what an estimator says.

Each reading of a claim is a set of options of `llama_memory.py`, planned on a virtual A100 of 40 GB: no GPU and no
memory is needed. A plan of one configuration is enough: the program is planned as it is.
"""

import json
import subprocess
import sys
from pathlib import Path

from .study import HOTLOOP, table

CLAIMED_GB = (52, 26, 18, 18, 14)
NEAR = 0.1
STEPS = ("fp32", "half precision", "+ checkpointing", "+ accumulation, batch 8", "+ flash attention")
READINGS = {
    "AdamW, autocast": ("", "--autocast", "--checkpoint", "--accumulate 8", "-math"),
    "AdamW, weights in bf16": ("", "--bf16-weights", "--checkpoint", "--accumulate 8", "-math"),
    "SGD, weights in bf16": ("--optimizer sgd", "--bf16-weights", "--checkpoint", "--accumulate 8", "-math"),
    "adapters of rank 8, bf16": ("--adapters 8", "--bf16-weights", "--checkpoint", "--accumulate 8", "-math"),
}
"""What each step adds to the options; attention is by its formula until the last."""


def options_of(reading, num_steps):
    """Return the program's options after so many steps of a reading."""
    words = ["--math"]
    for added in READINGS[reading][:num_steps]:
        words = [word for word in words if word != "--math"] if added == "-math" else [*words, *added.split()]
    return words


def planned(program, options, folder, device, seconds):
    """Return what a plan says of the program as it is; one that the folder has is not made again."""
    told = Path(folder) / f"plan{'_'.join(options)}.json"
    if not told.exists():
        words = ["memory", "plan", "--device", device, "--seconds", str(seconds), "--json", str(told)]
        command = [sys.executable, str(program), "--steps", "2", *options]
        done = subprocess.run([*HOTLOOP, *words, *command], cwd=folder, capture_output=True, text=True, check=False)
        if not told.exists():
            raise SystemExit(done.stderr[-2000:])
    return json.loads(told.read_text())["peaks"][0]


def show(program, device, folder, size=(), seconds=120):
    """Plan every reading of every claim, and print them beside what is claimed."""
    rows = [("reading", *STEPS), ("claimed", *(f"{claimed} GB" for claimed in CLAIMED_GB))]
    held = []
    for reading in READINGS:
        cells = []
        for num, claimed in enumerate(CLAIMED_GB, 1):
            peak = planned(program, [*size, *options_of(reading, num)], folder, device, seconds)
            allocated = peak["allocated"]["num_bytes"] / 1e9
            near = " *" if abs(allocated - claimed) <= NEAR * claimed else ""
            cells.append(f"{allocated:.1f} GB{near}")
            print(f"{reading}, {STEPS[num - 1]}: {cells[-1]}, fits: {peak['fits']}", flush=True)
        rows.append((reading, *cells))
        largest = sorted(peak["held"]["by_class"].items(), key=lambda pair: -pair[1])
        held.append(f"{reading}: " + ", ".join(f"{name} {num / 1e9:.1f}" for name, num in largest if num > 5e7))
    print(f"\nCase study 2: 7 billion parameters on {device}, allocated at the peak; * within {NEAR:.0%} of the claim\n")
    table(rows)
    print("\nHeld at the peak of the last step, GB\n" + "\n".join(held))
