"""Loss curves of every program under every change, one row each, so that a judge can be changed and asked again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import msgspec

from benchmarks.parity.breakers import BREAKERS
from benchmarks.parity.harmless import HARMLESS
from benchmarks.parity.programs import ALL, Program
from benchmarks.parity.warm import Change, Curves, run
from hotloop.stats.parity import perturbation

NUM_PERTURBED = 8


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    program: str
    kind: str
    """`original`, `perturbed`, `harmless` or `broken`."""
    change: str
    curves: Curves


def _stages() -> Iterator[list[tuple[str, str, Change]]]:
    """All programs go through one stage before the next: what is cut short has something of each."""
    noise = perturbation("bfloat16")
    perturbed = [
        ("perturbed", str(number), Change(perturb=noise, perturb_number=number))
        for number in range(1, NUM_PERTURBED + 1)
    ]
    first = NUM_PERTURBED // 2
    yield [("original", str(number), Change()) for number in range(2)] + perturbed[:first]
    yield [("broken", name, broken) for name, broken in BREAKERS.items()]
    yield [("harmless", name, harmless) for name, harmless in HARMLESS.items()]
    yield perturbed[first:]


def record(path: Path, programs: list[Program] | None = None) -> None:
    """Run what the file does not hold yet."""
    known = {(row.program, row.kind, row.change) for row in read(path)}
    with path.open("ab") as file:
        for stage, program in itertools.product(_stages(), programs or ALL):
            for kind, name, change in stage:
                if (program.name, kind, name) in known:
                    continue
                curves = run(program, change)
                row = Row(program=program.name, kind=kind, change=name, curves=curves)
                file.write(msgspec.json.encode(row) + b"\n")
                file.flush()
            print(program.name, len(stage), flush=True)


def read(path: Path) -> list[Row]:
    """Return the rows of a file, none where there is no file."""
    if not path.exists():
        return []
    return [msgspec.json.decode(line, type=Row) for line in path.read_bytes().splitlines()]
