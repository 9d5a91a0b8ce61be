"""What each constant of the search is worth: the same simulated sessions with one of them neutral.

    python -m benchmarks.tune.ablation --sessions 120 sets.arms.STEADY=0 search.policy.PUT_OFF=0

Each argument is a constant below `hotloop.tune` and the value that makes it neutral; an expression in `math` is one.
Prints a row for each: how many sessions came out differently, the mean change of proven gain when it is neutral, and of
the time to a first proof, each with its standard error over the sessions.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import math
import pkgutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import hotloop.tune
from benchmarks.tune.designs import Played, play, read, summary
from hotloop.model.optimization import Numerics


@contextlib.contextmanager
def neutral(name: str, value: Any) -> Iterator[Any]:
    """Give a constant another value wherever it was imported to; yields what it was."""
    module, _, constant = name.rpartition(".")
    defining = importlib.import_module(f"hotloop.tune.{module}")
    before = getattr(defining, constant)
    holders = [one for one in _modules() if one is defining or _imports(one, defining.__name__, constant)]
    for one in holders:
        setattr(one, constant, value)
    try:
        yield before
    finally:
        for one in holders:
            setattr(one, constant, before)


def _modules() -> list[Any]:
    found = pkgutil.walk_packages(hotloop.tune.__path__, "hotloop.tune.")
    return [importlib.import_module(one.name) for one in found]


def _imports(module: Any, defining: str, constant: str) -> bool:
    path = getattr(module, "__file__", None)
    if path is None or not hasattr(module, constant):
        return False
    text = Path(path).read_text()
    _, _, rest = text.partition(f"from {defining} import ")
    names = rest.split("\n\n")[0].split("\nfrom ")[0].split("\nimport ")[0]
    return constant in names.replace("(", " ").replace(")", " ").replace(",", " ").split()


def row(name: str, before: Any, value: Any, usual: Sequence[Played], now: Sequence[Played]) -> str:
    """Return a constant's row of the table."""
    both = list(zip(usual, now, strict=True))
    gains = [after.gain - was.gain for was, after in both]
    firsts = [(after.first_s - was.first_s) / was.budget_s for was, after in both if was.by_hand > 0.05]
    changed = sum(was != after for was, after in both)
    cells = (
        f"`{name}`",
        f"{before} to {value}",
        str(changed),
        *(_change(found) for found in (gains, firsts)),
    )
    return "| " + " | ".join(cells) + " |"


def _change(found: Sequence[float]) -> str:
    return f"{100 * fmean(found):+.2f} ± {100 * stdev(found) / math.sqrt(len(found)):.2f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("constants", nargs="*")
    parser.add_argument("--sessions", type=int, default=120)
    parser.add_argument(
        "--usual", type=Path, help="sessions kept by benchmarks.tune.designs; else they are played"
    )
    args = parser.parse_args()
    seeds = range(args.sessions)
    usual = read(args.usual)[: args.sessions] if args.usual else [play(seed) for seed in seeds]
    print(summary(usual))
    print("| constant | value to neutral | sessions changed | gain, % | first proof, % of the budget |")
    print("|---|---|---|---|---|", flush=True)
    for argument in args.constants:
        name, _, text = argument.partition("=")
        value = eval(text, vars(math) | {"inf": math.inf, "Numerics": Numerics})
        with neutral(name, value) as before:
            print(row(name, before, value, usual, [play(seed) for seed in seeds]), flush=True)


if __name__ == "__main__":
    main()
