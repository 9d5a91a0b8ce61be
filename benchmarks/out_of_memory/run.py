"""Run a program under its limit, with `hotloop observe` in front; return what the session keeps of its end."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.out_of_memory.cases import Case

KILLER = Path(__file__).parent / "killed_by_size.py"


def ran_out_under_limit(case: Case) -> dict[str, Any]:
    """Return the screen, and the account that the session keeps; without one it is empty."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (case.limit_bytes, case.limit_bytes))

    front = [str(KILLER), str(case.limit_bytes)] if case.killed else ["-m", "hotloop"]
    program = [sys.executable, str(case.path)]
    with tempfile.TemporaryDirectory() as name:
        environment = {**os.environ, "COLUMNS": "100", "OPENBLAS_NUM_THREADS": "1"}
        ended = subprocess.run(
            [sys.executable, *front, "observe", "--full", *program], cwd=name, env=environment, text=True,
            capture_output=True, check=False, preexec_fn=None if case.killed else limit,
        )  # fmt: skip
        told = Path(name) / "told.json"
        subprocess.run(
            [sys.executable, "-m", "hotloop", "report", "--json", str(told)],
            cwd=name,
            capture_output=True,
            check=False,
        )
        kept = json.loads(told.read_text()) if told.exists() else {}
    found = kept.get("out_of_memory") or kept.get("observation", {}).get("out_of_memory") or {}
    return {"code": ended.returncode, "screen": ended.stdout + ended.stderr, "found": found}
