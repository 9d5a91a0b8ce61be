"""Lines of a program on a virtual GPU, in a process of their own, without a plan around them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

GIB = 1 << 30
CACHE = Path.home() / ".cache" / "hotloop"
START = """
import json, sys
from pathlib import Path
from hotloop.probe.virtual_gpu.install import install, load

order, folder = json.loads(sys.argv[1]), Path(sys.argv[2])
assert load(order, folder)
import torch
from torch import nn
from torch.nn import functional as F

install(order, folder, lambda name, then: None)
world = torch.utils._python_dispatch._get_current_dispatch_mode()
sys.argv = sys.argv[2:]
exec(compile(Path("lines.py").read_text(), "lines.py", "exec"))
"""


def on_the_device(folder: Path, lines: str) -> list[str]:
    """Return what lines print on a virtual GPU; they have `torch`, `nn`, `F` and the `world` that they are in."""
    order = {
        "device": {"name": "X", "capability": (8, 0), "total_bytes": 40 * GIB, "num_processors": 108},
        "cache": str(CACHE),
        "workspace": 0,
        "configurations": [{"name": "as it is"}],
        "look_s": 1e6,
    }
    (folder / "lines.py").write_text(lines)
    command = [sys.executable, "-c", START, json.dumps(order), str(folder)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()
