"""Run the table, or write the page of rows that were kept: see the package's page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from benchmarks.tune.page import write
from benchmarks.tune.side_by_side import inside, shown
from benchmarks.tune.tuned import Tuned, geometric_mean, means, say, steps_of, tune
from benchmarks.tuning.programs import ALL, Program
from benchmarks.tuning.recipes import RECIPES, Recipes
from hotloop.model.quantities import counted


def main() -> None:
    """Do what is asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tuning", description=__doc__)
    parser.add_argument("--only", nargs="+", help="names of programs")
    parser.add_argument("--budget", type=float, default=240.0, help="seconds of one tuning session")
    parser.add_argument("--rows", type=Path, required=True, help="where rows are kept")
    parser.add_argument("--keep", type=Path, help="a folder for the screens and sessions")
    parser.add_argument("--no-recipes", action="store_true", help="leave them out: bf16 is slow on some CPUs")
    parser.add_argument("--page", action="store_true", help="write the page of the rows that are there")
    args = parser.parse_args()
    if args.page:
        write("tuning", "Twelve kinds of programs, tuned", list(page(read(args.rows))))
        return
    done = {row.name for row in read(args.rows)}
    for program in ALL:
        if program.name in done or (args.only and program.name not in args.only):
            continue
        recipes = {} if args.no_recipes else RECIPES
        row = tuned(program, args.budget, recipes, args.keep and args.keep.resolve())
        with args.rows.open("ab") as file:
            file.write(msgspec.json.encode(row) + b"\n")
        print(
            say(row),
            *(f"{name}: {shown(ratio)}" for name, ratio in row.recipes.items()),
            sep="\n  ",
            flush=True,
        )


def tuned(program: Program, budget_s: float, recipes: Recipes, keep: Path | None) -> Tuned:
    """Tune one program in a folder of its own."""
    row = Tuned(name=program.name, repository=program.kind, budget_s=budget_s)
    with TemporaryDirectory(prefix="tuning-") as scratch, inside(Path(scratch), {}):
        argv = (sys.executable, *program.arguments)
        plans = {name: steps_of(steps) for name, steps in recipes.items()}
        tune(row, argv, [steps_of(steps) for steps in program.by_hand], plans, keep)
    return row


def read(path: Path) -> list[Tuned]:
    """Return the rows of a file, none where there is no file."""
    if not path.exists():
        return []
    return [msgspec.json.decode(line, type=Tuned) for line in path.read_bytes().splitlines()]


def page(rows: Sequence[Tuned]) -> Iterator[str]:
    """The results as Markdown."""
    letters = [chr(ord("A") + number) for number in range(len(RECIPES))]
    yield (
        "Each program of `tests/programs` gets one session of `hotloop tune` with its budget and nothing else. Then "
        "the program as it was, the session's plan, the plans by hand (the fastest one counts) and the recipes run "
        "beside one another in 3 fresh sets: ratios over the program as it was, 95% intervals over sets and blocks."
    )
    yield ""
    yield from (f"- {letter}: {name}" for letter, name in zip(letters, RECIPES, strict=True))
    heads = [
        "kind",
        "program",
        "step",
        "wall of the budget",
        "claimed",
        "tune",
        "by hand",
        "tune over by hand",
        *letters,
    ]
    yield from ("", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|")
    for row in rows:
        cells = [
            row.repository,
            row.name,
            f"{row.step_s * 1e3:.1f} ms",
            f"{row.wall_s:.0f} of {row.budget_s:.0f} s",
            shown(row.claimed),
            shown(row.measured) if row.plan else "empty plan",
            shown(row.by_hand),
            shown(row.over_by_hand),
            *(shown(row.recipes.get(name)) for name in RECIPES),
        ]
        yield f"| {' | '.join(cells)} |"
    yield from ("", means(rows))
    for letter, name in zip(letters, RECIPES, strict=True):
        measured = [ratio[0] for row in rows if (ratio := row.recipes.get(name))]
        if measured:
            slower = sum(ratio < 1 for ratio in measured)
            yield (
                f"Recipe {letter}: {geometric_mean(measured):.2f}x in the geometric mean over "
                f"{counted(len(measured), 'program')}, {slower} of which it made slower."
            )
    missing = [program.name for program in ALL if program.name not in {row.name for row in rows}]
    if missing:
        yield f"\nIncomplete: {', '.join(missing)} were not run."
    yield from ("", "| program | tune's plan | the plan by hand |", "|---|---|---|")
    for row in rows:
        yield f"| {row.name} | {', '.join(row.plan) or row.failed[-60:] or 'empty'} | {', '.join(row.by_hand_steps)} |"


if __name__ == "__main__":
    main()
