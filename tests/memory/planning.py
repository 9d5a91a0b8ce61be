"""A program through the command, and its plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..cli.commands import hotloop


def plan(folder: Path, *words: str, device: str = "A100 40GB") -> dict[str, Any]:
    """Return the plan of a program, with its peaks by configuration, and what was printed."""
    out = folder / "plan.json"
    done = hotloop(
        "memory",
        "plan",
        "--device",
        device,
        "--json",
        str(out),
        *words,
        cwd=folder,
        limit_s=280,
        COLUMNS="80",
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(out.read_text())
    by_name = {peak["configuration"]: peak for peak in found["peaks"]}
    return {**found, "by_name": by_name, "screen": done.stdout}
