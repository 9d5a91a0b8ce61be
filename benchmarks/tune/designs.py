"""Whole sessions on recorded step times with known truths: how much is proven, and how soon.

    python -m benchmarks.tune.designs --sessions 600 --keep new.jsonl
    python -m benchmarks.tune.designs --compare old.jsonl new.jsonl

Each session is one world (`benchmarks.tune.worlds`): a program, a machine as it was recorded, a truth, a budget. Two
searches that play the same seeds are compared session by session. `gain` is the true log gain of the plan that was
proven, 0 where none was; `first_s` the seconds until a first plan was proven, the budget where none was.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import msgspec
from tests.tune.sessions import Simulation
from tests.tune.test_realistic_noise import Recorded

from benchmarks.tune.worlds import World, by_hand, on, world
from hotloop.tune.confirm.standing import ConfirmedSets
from hotloop.tune.executor import SetOrder, SetRecord


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """What one session came to."""

    seed: int
    groups: dict[str, str]
    gain: float
    by_hand: float
    first_s: float
    wall_s: float
    budget_s: float
    harmful: int
    """Steps of the plan that really cost time, alone and beside the others."""
    idle: int
    """Steps that bring less than half a per cent."""
    said: str = ""
    """How it ended by an error; empty: it did not."""


def play(seed: int, *, verbose: bool = False) -> Played:
    """Play one session."""
    one = world(seed)
    session, first = _session(one)
    if verbose:
        session.listen(lambda text: print(f"{session.clock() - 1000:7.1f}  {text}"))
    said, plan = "", frozenset[str]()
    wall_s = one.budget_s
    try:
        result = session.run(one.candidates)
        labels = {step.name + str(sorted(step.params.items())) for step in result.plan.steps}
        steps = [c for c in one.candidates if c.name + str(sorted(c.params.items())) in labels]
        plan, wall_s = on(steps), result.wall_s
        if verbose:
            for step in result.plan.steps:
                print(step.name, f"{step.ratio:.3f} [{step.low:.3f}, {step.high:.3f}]", step.method)
            for refusal in result.refused:
                print("-", refusal.name, refusal.reason)
    except Exception as error:
        if verbose:
            raise
        said, steps = f"{type(error).__name__}: {error}", []
    costs = [one.log_gain(plan) - one.log_gain(on([s for s in steps if s != gone])) for gone in steps]
    return Played(
        seed=seed,
        groups=one.groups(),
        gain=one.log_gain(plan),
        by_hand=by_hand(one),
        first_s=min([one.budget_s, *first]),
        wall_s=wall_s,
        budget_s=one.budget_s,
        harmful=sum(cost < -0.005 for cost in costs),
        idle=sum(abs(cost) < 0.005 for cost in costs),
        said=said,
    )


def _session(one: World) -> tuple[Simulation, list[float]]:
    """Return a session, and the list that takes the second at which a first plan is proven."""
    session = Simulation(
        one.truth,
        seed=one.seed,
        budget_s=one.budget_s,
        disturbance=Recorded(one.seed, one.program, one.condition),
        switchable=lambda candidate: candidate.name in one.knobs,
        conflicts=one.conflicts,
        interactions=one.interactions,
        curve_rounds=one.curve_rounds,
        shape=one.shape,
        may_be_late=True,
    )
    first: list[float] = []
    sets: ConfirmedSets = session.confirmed
    add = sets.add

    def watched(order: SetOrder, record: SetRecord, *rest: Any, **named: Any) -> Any:
        found = add(order, record, *rest, **named)
        if not first and sets.proven() is not None:
            first.append(session.clock() - 1000.0)
        return found

    sets.add = watched  # type: ignore[method-assign]
    return session, first


def summary(played: Sequence[Played]) -> str:
    """Return mean gain, share of what can be had, mean time to the first proof where one is to be had."""
    able = [one for one in played if one.by_hand > 0.05]
    share = fmean(one.gain for one in able) / fmean(one.by_hand for one in able)
    return (
        f"{len(played)} sessions, mean proven log gain {fmean(one.gain for one in played):.4f} ({share:.1%} of by "
        f"hand), first proof {fmean(one.first_s / one.budget_s for one in able):.3f} of the budget, "
        f"used {fmean(one.wall_s / one.budget_s for one in played):.2f} of it, harmful steps "
        f"{sum(one.harmful for one in played)}, idle {sum(one.idle for one in played)}, "
        f"late {sum(one.wall_s > 1.1 * one.budget_s + 5 for one in played)}, "
        f"errors {sum(bool(one.said) for one in played)}"
    )


def compare(old: Sequence[Played], new: Sequence[Played]) -> Iterator[str]:
    """Yield the rows of a table: each group, old beside new, with the standard error of the difference."""
    before = {one.seed: one for one in old}
    pairs = [(before[one.seed], one) for one in new if one.seed in before]
    grouped: dict[tuple[str, str], list[tuple[Played, Played]]] = defaultdict(list)
    for was, now in pairs:
        grouped["all", ""].append((was, now))
        for key, value in was.groups.items():
            grouped[key, value].append((was, now))
    yield "| group | | sessions | by hand | proven gain: old | new | difference | first proof: old | new | difference |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for (key, value), found in sorted(grouped.items(), key=_order):
        yield _row(key, value, found)


def _order(item: tuple[tuple[str, str], object]) -> tuple[bool, str, float, str]:
    (key, value), _ = item
    number = value.split()[0] if value else "0"
    return key != "all", key, float(number) if number.isdigit() else 0.0, value


def _row(key: str, value: str, found: Sequence[tuple[Played, Played]]) -> str:
    able = [pair for pair in found if pair[0].by_hand > 0.05]
    gains = [now.gain - was.gain for was, now in found]
    firsts = [(now.first_s - was.first_s) / was.budget_s for was, now in able] or [0.0, 0.0]
    old_first = fmean(was.first_s / was.budget_s for was, _ in able) if able else math.nan
    new_first = fmean(now.first_s / now.budget_s for _, now in able) if able else math.nan
    cells = (
        key,
        value,
        str(len(found)),
        f"{math.exp(fmean(was.by_hand for was, _ in found)):.3f}x",
        f"{math.exp(fmean(was.gain for was, _ in found)):.3f}x",
        f"{math.exp(fmean(now.gain for _, now in found)):.3f}x",
        f"{100 * fmean(gains):+.1f}% ± {100 * stdev(gains) / math.sqrt(len(gains)):.1f}",
        f"{old_first:.0%}",
        f"{new_first:.0%}",
        f"{100 * fmean(firsts):+.0f} ± {100 * stdev(firsts) / math.sqrt(len(firsts)):.0f}",
    )
    return "| " + " | ".join(cells) + " |"


def read(path: Path) -> list[Played]:
    """Return kept sessions."""
    return [msgspec.json.decode(line, type=Played) for line in path.read_bytes().splitlines()]


def main() -> None:
    """Play sessions and keep them, or compare kept ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=600)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--compare", type=Path, nargs=2)
    parser.add_argument("--show", type=int, help="play one seed and print every decision")
    args = parser.parse_args()
    if args.compare:
        print("\n".join(compare(*map(read, args.compare))))
        for name, path in zip(("old", "new"), args.compare, strict=True):
            print(f"{name}: {summary(read(path))}")
        return
    if args.show is not None:
        print(world(args.show))
        print(play(args.show, verbose=True))
        return
    began, played = time.process_time(), []
    with args.keep.open("wb") if args.keep else open("/dev/null", "wb") as kept:
        for seed in range(args.first, args.first + args.sessions):
            played.append(play(seed))
            kept.write(msgspec.json.encode(played[-1]) + b"\n")
            kept.flush()
    print(summary(played), f"({time.process_time() - began:.0f} s of CPU)", file=sys.stderr)


if __name__ == "__main__":
    main()
