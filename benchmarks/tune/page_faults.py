"""Page faults of the twelve programs as they are, and with malloc's switches: what an allocator can save.

python -m benchmarks.tune.page_faults
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from benchmarks.tune.page import write
from benchmarks.tuning.programs import ALL
from hotloop.optimize.catalogue.system.cpu_allocator.row import GLIBC

BEFORE_S, FOR_S = 8.0, 4.0


class Taken(msgspec.Struct, frozen=True):
    """What the kernel did for a process, a second."""

    faults: float
    user_s: float
    system_s: float


def taken(argv: list[str], environment: dict[str, str]) -> Taken | None:
    """Run a program, and return what the kernel did for it once it had run for a while; None: it had ended."""
    with TemporaryDirectory() as folder, open(os.devnull, "w") as nothing:
        run = subprocess.Popen(argv, cwd=folder, stdout=nothing, stderr=nothing, env=environment)
        try:
            time.sleep(BEFORE_S)
            began, before = time.monotonic(), _counts(run.pid)
            time.sleep(FOR_S)
            seconds, after = time.monotonic() - began, _counts(run.pid)
            if run.poll() is not None:
                return None
        finally:
            run.kill()
            run.wait()
    faults, user, system = ((late - early) / seconds for early, late in zip(before, after, strict=True))
    ticks = os.sysconf("SC_CLK_TCK")
    return Taken(faults, user / ticks, system / ticks)


def _counts(pid: int) -> tuple[int, int, int]:
    """Minor faults, and ticks in user and system mode, of all threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[7]), int(fields[11]), int(fields[12])


def main() -> None:
    """Run the programs and write the page."""
    lines = [
        f"Each program for {BEFORE_S:.0f} s, then {FOR_S:.0f} s counted, as it is and with malloc's switches (the "
        "optimization `cpu_allocator`). User and system are processor seconds a second.",
        "",
        "| program | faults a second | user | system | with the switches | user | system |",
        "|---|---|---|---|---|---|---|",
    ]
    for program in ALL:
        argv = [sys.executable, *map(str, program.arguments)]
        found = [taken(argv, {**os.environ, **switches}) for switches in ({}, GLIBC)]
        cells = [
            cell
            for one in found
            for cell in (
                (f"{one.faults:.0f}", f"{one.user_s:.2f}", f"{one.system_s:.3f}")
                if one
                else ("ended", "", "")
            )
        ]
        lines.append(f"| {program.name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    write("page-faults", "Page faults of twelve programs", lines)


if __name__ == "__main__":
    main()
