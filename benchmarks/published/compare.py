"""Run every script of the corpus whole: alone, under `hotloop observe`, and under `hotloop run` with a plan."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.published.corpus import Entry
from benchmarks.published.place import Absent, Program, lay_out
from hotloop.model.tuning import Compatibility, Plan, PlanStep
from hotloop.tune.plan.plan_file import to_toml

LIMIT_S = 600.0
WAYS = ("alone", "observe", "run")


class Ending(msgspec.Struct, frozen=True):
    """How one run of a script ended."""

    exit_code: int | None
    """None: it was ended after `LIMIT_S`."""
    loss: str | None
    """The last one that it printed."""
    seconds: float
    output: str
    """Its end."""


class Row(msgspec.Struct, frozen=True):
    """One script."""

    entry: Entry
    endings: dict[str, Ending]
    absent: str = ""

    def verdict(self) -> str:
        """Return what the comparison says."""
        if self.absent:
            return f"absent: {self.absent}"
        alone = self.endings["alone"]
        if alone.exit_code != 0:
            return "fails by itself"
        for way, ending in self.endings.items():
            if ending.exit_code != alone.exit_code:
                return f"died under {way}"
            if self.entry.seeded and ending.loss != alone.loss:
                return f"another loss under {way}"
        return "same"

    def differs(self) -> bool:
        """Whether it ended otherwise with us."""
        return bool(self.endings) and self.verdict() not in {"same", "fails by itself"}


def exact_plan() -> str:
    """Return a plan of optimizations that change no number, as TOML."""
    steps = tuple(
        PlanStep(name=name, ratio=1.0, low=1.0, high=1.0) for name in ("openmp_wait_policy", "debug_apis_off")
    )
    fit = Compatibility(machine={}, torch_version=None, script=None, script_sha256=None, command=())
    return to_toml(Plan(steps=steps, speedup=None, parity=None, fit=fit))


def command(way: str, program: Program, scratch: Path) -> tuple[str, ...]:
    """Return the command line of one way to run a program."""
    if way == "alone":
        return program.argv
    hotloop = (sys.executable, "-m", "hotloop")
    if way == "observe":
        return (*hotloop, "observe", "--full", "--quiet", *program.argv)
    plan = scratch / "plan.toml"
    plan.write_text(exact_plan())
    return (*hotloop, "run", "--force", "--plan", str(plan), *program.argv)


def run(way: str, entry: Entry, program: Program, scratch: Path) -> Ending:
    """Run a program one way, to its end."""
    began = time.monotonic()
    terminal, keyboard = pty.openpty()  # scripts ask it for its size
    try:
        done = subprocess.run(
            command(way, program, scratch), cwd=program.folder, env=program.environment, timeout=LIMIT_S,
            stdin=keyboard, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            check=False,
        )  # fmt: skip
        code, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        code, output = None, (late.stdout or b"").decode(errors="replace")
    finally:
        os.close(terminal)
        os.close(keyboard)
    losses = re.findall(entry.loss, output, re.MULTILINE)
    return Ending(code, losses[-1] if losses else None, time.monotonic() - began, output[-3000:])


def compare(entry: Entry, sources: Path, site: Path | None, ways: Sequence[str] = WAYS) -> Row:
    """Run a script each way, each in a fresh copy of its repository."""
    endings: dict[str, Ending] = {}
    for way in ways:
        with tempfile.TemporaryDirectory() as folder:
            try:
                program = lay_out(entry, sources, site, Path(folder))
            except Absent as reason:
                return Row(entry, {}, str(reason))
            endings[way] = run(way, entry, program, Path(folder))
        if way == "alone" and endings[way].exit_code != 0:
            break
    return Row(entry, endings)


def table(rows: Sequence[Row]) -> list[str]:
    """Return the page's table."""
    lines = [
        "| script | repository | commit | exit code: " + ", ".join(WAYS) + " | last loss: " + ", ".join(WAYS)
        + " | seconds | verdict |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for row in rows:
        ends = [row.endings.get(way) for way in WAYS]
        codes = ", ".join("-" if end is None else str(end.exit_code) for end in ends)
        losses = ", ".join("-" if end is None else str(end.loss) for end in ends)
        seconds = ", ".join("-" if end is None else f"{end.seconds:.0f}" for end in ends)
        entry = row.entry
        seeded = "" if entry.seeded else " (not seeded)"
        lines.append(
            f"| {entry.name} | {entry.repository} | {entry.commit[:10]} | {codes} | {losses}{seeded} | {seconds} "
            f"| {row.verdict()} |"
        )
    return lines
