"""`python -m benchmarks.memory_plan published|tally|survey|page OUT [NAME...]`: rows go to OUT, as JSON lines.

Names that OUT has are left out, unless asked for. published: programs whose peak on a GPU was published, beside
other estimators. tally: programs of `tests/programs` against a count of their tensors on the CPU. survey: whether the
plan works at all. page: the page of the rows.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.memory_plan import runs
from benchmarks.memory_plan.base import base
from benchmarks.memory_plan.known import KNOWN, PROGRAMS
from benchmarks.memory_plan.page import page
from benchmarks.memory_plan.surveyed import SURVEYED, TALLIED

LOOK_S = 30.0
"""Enough for the whole of the short programs that are counted."""


def main() -> None:
    """Run what the command line asks for."""
    kind, out, *names = sys.argv[1:]
    path = Path(out).resolve()
    if kind == "page":
        sys.stdout.write(page([json.loads(line) for line in path.read_text().splitlines()]))
        return
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    have = {row["name"] for row in rows if row["kind"] == kind}
    known = {"published": [each.name for each in KNOWN], "tally": [*TALLIED], "survey": [*SURVEYED]}[kind]
    wanted = [each for each in known if (each in names if names else each not in have)]
    for row in {"published": _published, "tally": _tally, "survey": _survey}[kind](wanted):
        with path.open("a") as file:
            file.write(json.dumps({"kind": kind, **row}) + "\n")
        print(row, flush=True)


def _published(names: list[str]) -> Any:
    for known in KNOWN:
        if known.name not in names:
            continue
        plan = base(known.script, known.arguments, known.device, PROGRAMS, look_s=known.look_s)
        parameters = plan.parameters / known.params_bytes
        yield {
            "name": known.name,
            "truth": known.truth,
            "of": known.kind,
            "source": known.source,
            "unlike": known.unlike,
            "plan": msgspec.to_builtins(plan),
            "mem_tracker": runs.last_number("mem_tracker", known.script, (*known.arguments, "--steps", "3")),
            "accelerate": runs.accelerate(parameters, known.params_bytes),
            "zero": runs.zero(parameters),
            "sixteen": runs.sixteen(parameters),
        }


def _tally(names: list[str]) -> Any:
    where = Path(tempfile.mkdtemp()) / "programs"
    shutil.copytree("tests/programs", where)
    for name, words in TALLIED.items():
        if name not in names:
            continue
        script, *arguments = shlex.split(words)
        plan = base(where / script, arguments, "T4", where, look_s=LOOK_S)
        truth = runs.last_number("tally", where / script, arguments, cwd=where)
        yield {"name": name, "truth": truth, "plan": msgspec.to_builtins(plan)}


def _survey(names: list[str]) -> Any:
    for name, (folder, words) in SURVEYED.items():
        if name not in names:
            continue
        script, *arguments = shlex.split(words)
        where = Path(folder).resolve()
        plan = runs.plan(where / script, arguments, "T4", seconds=120, cwd=where)
        yield {"name": name, "plan": msgspec.to_builtins(plan)}


if __name__ == "__main__":
    main()
