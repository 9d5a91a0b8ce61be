"""Run `hotloop diagnose` on the programs of the fault library, and keep what was observed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from tests.faults.case import Case

from benchmarks.diagnosis.outcome import Outcome
from hotloop.diagnose.check.engine import diagnose
from hotloop.diagnose.check.source import with_source
from hotloop.model.diagnosis import Diagnosis

_PATIENCE_S = 120
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0"}
"""One thread that does not spin: the programs are compared with each other on a machine that may be busy."""


def run(case: Case, seconds: float, folder: Path) -> Path | None:
    """Diagnose one program by the command as a user types it; return where the diagnosis is, None: none came."""
    with tempfile.TemporaryDirectory(prefix="fault-") as name:
        here = Path(name)
        case.write(here)
        words = ["--quiet", "--no-ceilings", "--seconds", str(seconds), "--json", "found.json", *case.words]
        errors = patiently([sys.executable, "-m", "hotloop", "diagnose", *words], here)
        found = here / "found.json"
        if not found.is_file():
            (folder / f"{case.name}.failed").write_text(errors, encoding="utf-8")
            return None
        kept = folder / f"{case.name}.json"
        kept.write_bytes(found.read_bytes())
        return kept


def outcome(case: Case, folder: Path) -> Outcome | None:
    """What the rules as they are now say of what was observed; None: the program was not run."""
    found, failed, other = (folder / f"{case.name}.{end}" for end in ("json", "failed", "traceml"))
    said = json.loads(other.read_text()) if other.is_file() else None
    if failed.is_file() and not found.is_file():
        return Outcome(case, None, " ".join(failed.read_text().split()[-20:]), said)
    return Outcome(case, _again(case, found), other=said) if found.is_file() else None


def _again(case: Case, found: Path) -> dict[str, Any]:
    text = found.read_text(encoding="utf-8")
    script = msgspec.json.decode(text, type=Diagnosis).observation.program.script
    with tempfile.TemporaryDirectory(prefix="fault-") as name:
        written = case.write(Path(name))
        # The lines that were sampled are those of the files as they are written now.
        if script and Path(script).is_absolute():
            text = text.replace(str(Path(script).parent), name)
        observation = msgspec.json.decode(text, type=Diagnosis).observation
        program = msgspec.structs.replace(observation.program, script=str(written))
        here = msgspec.structs.replace(observation, program=program)
        said: dict[str, Any] = json.loads(msgspec.json.encode(with_source(diagnose(here), Path(name))))
        return said


def patiently(command: Sequence[str], folder: Path, patience_s: float = _PATIENCE_S) -> str:
    """Run a command in a folder and return what it wrote to standard error."""
    with (folder / "errors").open("w+") as errors:
        child = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **_ENVIRONMENT},
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        try:
            child.wait(timeout=patience_s)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGINT)  # hotloop ends the program it observes
            child.wait(timeout=patience_s)
            return f"no step was measured in {patience_s} s"
        errors.seek(0)
        return errors.read()
