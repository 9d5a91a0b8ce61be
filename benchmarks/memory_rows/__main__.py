"""What the rows of the family memory save and cost.

    python -m benchmarks.memory_rows peaks FOLDER [PROGRAM]
    python -m benchmarks.memory_rows times FOLDER [PROGRAM]
    python -m benchmarks.memory_rows table FOLDER

Each program runs unmodified with a plan (`hotloop run --plan`). `peaks` follows every allocation of six steps, and
keeps peaks and losses in FOLDER, as far as they are not there; what was compiled is in torch's caches then. `times`
runs each case twice, in order and backwards, on a machine that does nothing else. `table` prints what is there.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec

from benchmarks.memory_rows.cases import CASES, Case
from hotloop.machine.host.identity import identity
from hotloop.model.observation import SCHEMA
from hotloop.model.tuning import Compatibility, Plan, PlanStep
from hotloop.tune.plan.plan_file import to_toml

HERE = Path(__file__).parent
PEAK_STEPS, TIMED_STEPS = 6, 12
MIB = 1 << 20


def plan_file(folder: Path, case: Case) -> Path:
    """Write the plan of a case."""
    fit = Compatibility(
        machine=msgspec.to_builtins(identity()),
        torch_version=version("torch"),
        script=None,
        script_sha256=None,
        command=("python",),
    )
    made = tuple(
        PlanStep(name=name, params=params, ratio=1.0, low=1.0, high=1.0)
        for name, params in case.steps.items()
    )
    path = folder / "plan.toml"
    path.write_text(to_toml(Plan(steps=made, speedup=None, parity=None, fit=fit, schema=SCHEMA)))
    return path


def run(folder: Path, case: Case, before: tuple[str, ...], num_steps: int) -> str:
    """Run a case; return its output."""
    start = [sys.executable, "-m", "hotloop", "run", "--force", "--plan", str(plan_file(folder, case))]
    command = [*(start if case.steps else ()), sys.executable, *before]
    done = subprocess.run(
        [*command, str(HERE / "programs" / f"{case.program}.py")],
        env={**os.environ, **case.setting, "STEPS": str(num_steps)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stdout[-2000:] + done.stderr[-3000:])
    return done.stdout


def told(output: str, word: str) -> Any:
    """Return what a program printed behind a word."""
    line = next(line for line in output.splitlines() if line.startswith(word))
    return ast.literal_eval(line.removeprefix(word).strip())


def peaks(folder: Path, cases: list[Case]) -> None:
    """Keep peak and losses of each case."""
    known = _read(folder, "peaks")
    for case in cases:
        if case.key in known:
            continue
        output = run(folder, case, (str(HERE / "tracked.py"),), PEAK_STEPS)
        known[case.key] = {
            "peak_bytes": told(output, "PEAK"),
            "losses": told(output, "RESULT")["losses"],
        }
        (folder / "peaks.json").write_bytes(msgspec.json.encode(known))
        print(case.key, f"{known[case.key]['peak_bytes'] / MIB:.1f} MiB", flush=True)


def times(folder: Path, cases: list[Case]) -> None:
    """Keep the step times of each case."""
    known = _read(folder, "times")
    for case in [*cases, *reversed(cases)]:
        result = told(run(folder, case, (), TIMED_STEPS), "RESULT")
        known.setdefault(case.key, []).append(result["step_s"])
        (folder / "times.json").write_bytes(msgspec.json.encode(known))


def table(folder: Path, cases: list[Case]) -> None:
    """Print a row of a Markdown table for each case that was measured."""
    sizes, seconds = _read(folder, "peaks"), _read(folder, "times")
    for case in cases:
        plain = case._replace(steps={}).key
        if case.key not in sizes or case.key not in seconds or plain not in seconds:
            continue
        step_s, plain_s = fmean(seconds[case.key]), fmean(seconds[plain])
        peak, plain_peak = sizes[case.key]["peak_bytes"], sizes[plain]["peak_bytes"]
        losses = zip(sizes[plain]["losses"], sizes[case.key]["losses"], strict=True)
        more_ms, less = (step_s - plain_s) * 1e3, (plain_peak - peak) / MIB
        rate = f"{less / more_ms:.2f}" if more_ms > 0 and less > 0 else "-"
        print(
            f"| {case.base} | {case.label} | {peak / MIB:.1f} MiB | {peak / plain_peak:.2f} "
            f"| {' '.join(f'{each * 1e3:.0f}' for each in seconds[case.key])} ms | {step_s / plain_s:.2f} "
            f"| {rate} | {max(abs(one - other) for one, other in losses):.1e} |"
        )


def _read(folder: Path, what: str) -> dict[str, Any]:
    path = folder / f"{what}.json"
    found: dict[str, Any] = msgspec.json.decode(path.read_bytes()) if path.exists() else {}
    return found


if __name__ == "__main__":
    part, where, *programs = sys.argv[1:]
    chosen = [case for case in CASES if not programs or case.program in programs]
    {"peaks": peaks, "times": times, "table": table}[part](Path(where), chosen)
