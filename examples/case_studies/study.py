"""What the case studies share: rows of changes, each compared by hotloop with what helped before it, and a table.

Every ratio comes from `hotloop compare`: both programs run in turns, in fresh processes, several pairs of them, and the
interval holds the variance between pairs. A row that is not proven faster is shown, and left out of the next one.
"""

import json
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

HOTLOOP = [sys.executable, "-m", "hotloop"]


@dataclass(frozen=True)
class Row:
    """One change of a program's options.

    Attributes:
        name: what the table says.
        options: added to the command.
        samples: how many times as many samples a step has with it.
        why_not: why it cannot be run here; empty: it can.
    """

    name: str
    options: tuple[str, ...]
    samples: float = 1.0
    why_not: str = ""


@dataclass
class Result:
    """What came of a row; ratios are of samples a second."""

    row: Row
    step_s: float | None = None
    peak_bytes: int | None = None
    ratio: tuple[float, float, float] | None = None
    verdict: str = "not tried"
    kept: bool = False
    total: float = 1.0
    extra: dict = field(default_factory=dict)


def hotloop(*words, folder):
    """Run hotloop and return the JSON that it writes; its own progress goes to the terminal."""
    with tempfile.TemporaryDirectory() as out:
        file = Path(out) / "figures.json"
        command, *rest = words
        done = subprocess.run(
            [*HOTLOOP, command, "--json", str(file), *rest], cwd=folder, stdout=subprocess.DEVNULL, check=False
        )
        if done.returncode or not file.exists():
            raise SystemExit(f"hotloop {command} ended with {done.returncode}: {' '.join(rest)}")
        return json.loads(file.read_text())


def compare(before, after, *, folder, budget):
    """Return hotloop's comparison of two commands, each a list of words."""
    return hotloop("compare", "--budget", budget, shlex.join(before), shlex.join(after), folder=folder)


def observe(command, *, folder, steps):
    """Return hotloop's observation of a command."""
    return hotloop("observe", "--no-deep", "--steps", str(steps), *command, folder=folder)


def waterfall(command, rows, *, folder, budget):
    """Compare row by row, each with what was kept before it; at the end, all that was kept with the original anew.

    Returns:
        a result for each row, and the comparison of the end, None where nothing was kept.
    """
    kept, samples, results = [], 1.0, []
    for row in rows:
        result = Result(row)
        results.append(result)
        if row.why_not:
            result.verdict = row.why_not
            continue
        print(f"case study: {row.name}", file=sys.stderr, flush=True)
        found = compare([*command, *kept], [*command, *kept, *row.options], folder=folder, budget=budget)
        result.step_s, result.peak_bytes = found["after"]["step_s"], found["after"]["peak_bytes"]
        result.extra = {"before_s": found["before"]["step_s"], "before_bytes": found["before"]["peak_bytes"]}
        if found["ratio"] is None:
            result.verdict = found["reason"]
            continue
        low, middle, high = (found["ratio"][name] * row.samples for name in ("low", "ratio", "high"))
        result.ratio = (middle, low, high)
        result.kept = low > 1.01
        result.verdict = "faster" if result.kept else "slower" if high < 1 / 1.01 else "not proven"
        print(f"case study: {row.name}: {middle:.2f}x [{low:.2f}, {high:.2f}], {result.verdict}", file=sys.stderr, flush=True)
        if result.kept:
            kept, samples = [*kept, *row.options], samples * row.samples
        result.total = samples
    whole = compare(command, [*command, *kept], folder=folder, budget=budget) if kept else None
    return results, whole, samples


def show(title, results, whole, samples, command):
    """Print the table, and how to get it again."""
    print(f"\n{title}\n")
    rows = [("change, each on what was kept before it", "step", "samples/s, ratio", "95% interval", "peak memory", "")]
    first = next((each for each in results if each.extra), None)
    if first is not None:
        rows.append(("as it was", time(first.extra["before_s"]), "1", "", memory(first.extra["before_bytes"]), ""))
    for each in results:
        ratio = f"{each.ratio[0]:.2f}x" if each.ratio else ""
        interval = f"[{each.ratio[1]:.2f}, {each.ratio[2]:.2f}]" if each.ratio else ""
        said = "kept" if each.kept else f"left out: {each.verdict}"
        rows.append((each.row.name, time(each.step_s), ratio, interval, memory(each.peak_bytes), said))
    table(rows)
    if whole is not None and whole["ratio"] is not None:
        low, middle, high = (whole["ratio"][name] * samples for name in ("low", "ratio", "high"))
        print(f"\nall that was kept, against the original in fresh processes: {middle:.2f}x [{low:.2f}, {high:.2f}]")
    print(f"method: hotloop compare; the program: {shlex.join(command)}")


def table(rows):
    """Print rows in columns."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for number, row in enumerate(rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))


def time(seconds):
    """Return seconds in words."""
    if seconds is None:
        return ""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.1f} ms"


def memory(num_bytes):
    """Return bytes in words."""
    return "" if num_bytes is None else f"{num_bytes / 2**20:,.0f} MiB"
