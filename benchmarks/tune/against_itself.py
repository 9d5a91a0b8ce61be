"""A program against itself: sessions of fresh pairs, none of which may come out faster.

python -m benchmarks.tune.against_itself [--sessions 20] [--rows FILE] [--neighbour]

Sessions of before are read from the file, so that thirty can be run in several sittings. The neighbour burns one core
for 2 s of every 6.
"""

from __future__ import annotations

import argparse
import math
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median

import msgspec

from benchmarks.tune.neighbour import BURN
from benchmarks.tune.page import write
from hotloop.launch.isolation.decide import plan_isolation
from hotloop.launch.isolation.scratch import scratch_root
from hotloop.model.observation import Anchor
from hotloop.stats.floor import aa_floor, pair_spread
from hotloop.stats.pairs import MIN_BLOCKS
from hotloop.stats.verdict import decide
from hotloop.tune.confirm.confirmation import TAME_ROUNDS
from hotloop.tune.confirm.set_pairs import MAX_SETS, MIN_SETS
from hotloop.tune.design.block_length import Blocks
from hotloop.tune.design.costs import Costs
from hotloop.tune.executor import SetOrder, SetRecord
from hotloop.tune.sets.set_runner import while_time
from hotloop.tune.trials.duet import DuetExecutor
from hotloop.tune.trials.setting import Setting

PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.Adam(model.parameters())
x, y = torch.randn(64, 64), torch.randint(0, 10, (64,))
while True:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
"""
SESSION_S = 120.0
"""Of one session: no pair is begun after it."""
WIDE = 0.03


class Session(msgspec.Struct, frozen=True):
    """What one session says."""

    verdict: str
    half_width: float
    """Of the interval, relative."""
    num_pairs: int
    seconds: float
    reason: str


def session(executor: DuetExecutor) -> Session:
    """Run one pair for the floor, then pairs as a confirmation does: until the interval is narrow, or the time over."""
    began = time.monotonic()
    costs = Costs(start_s=5.0, round_s=0.7, turns=6)
    floor_pairs = [_log_ratios(_pair(executor, costs))]
    spread, floor = pair_spread(floor_pairs), aa_floor(floor_pairs)
    pairs: list[SetRecord] = []
    while True:
        pairs.append(_pair(executor, costs))
        decision = decide(
            [_log_ratios(pair) for pair in pairs],
            floor=floor,
            max_pairs=MAX_SETS,
            prior_sd=spread.sd,
            prior_df=spread.df,
            disturbed=[number for number, pair in enumerate(pairs) if pair.disturbed],
        )
        assert decision.ratio is not None
        half = math.sqrt(decision.ratio.high / decision.ratio.low) - 1
        spent = time.monotonic() - began
        if len(pairs) >= MIN_SETS and (half <= WIDE or len(pairs) == MAX_SETS or spent > SESSION_S):
            return Session(decision.verdict.value, half, len(pairs), spent, decision.reason)


def _log_ratios(pair: SetRecord) -> tuple[float, ...]:
    return pair.log_ratios((0,), 1)


def _pair(executor: DuetExecutor, costs: Costs) -> SetRecord:
    order = SetOrder(plans=((), ()), max_rounds=max(TAME_ROUNDS, costs.telling_rounds(2)))
    began = time.monotonic()
    record = executor.run(order, while_time(lambda: math.inf, 2, MIN_BLOCKS))
    assert isinstance(record, SetRecord), record
    costs.learn(order, record, time.monotonic() - began)
    return record


def _somebody_else() -> int:
    """Start a neighbour that is no child of ours, whose time would count as our own; return its pid."""
    begin = [sys.executable, "-c", BURN]
    script = f"{shlex.join(begin)} >/dev/null 2>&1 & echo $!"
    said = subprocess.run(
        ["sh", "-c", script], stdout=subprocess.PIPE, text=True, check=True, start_new_session=True
    )
    return int(said.stdout)


def read(path: Path) -> list[Session]:
    """Return the sessions of a file, none where there is no file."""
    if not path.exists():
        return []
    return [msgspec.json.decode(line, type=Session) for line in path.read_bytes().splitlines()]


def main() -> None:
    """Run the sessions and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--rows", type=Path, help="where sessions are kept, and read from")
    parser.add_argument("--neighbour", action="store_true", help="beside one that burns one core on and off")
    args = parser.parse_args()
    num, kept = args.sessions, args.rows
    rows = read(kept) if kept else []
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "train.py"
        script.write_text(PROGRAM)
        argv = [sys.executable, str(script)]
        setting = Setting(
            argv=tuple(argv),
            environment=dict(os.environ),
            isolation=plan_isolation(argv, Path(folder), scratch_root(), network=True),
            anchor=Anchor("optimizer", 0, 1),
            num_ranks=1,
            step_s=0.001,
            startup_s=5.0,
            peak_bytes=None,
        )
        blocks = Blocks(num_steps=100, discard=16, warm_steps=300, max_rounds=None, turns=6, typical=True)
        executor = DuetExecutor(setting, blocks, lambda _: None)
        neighbour = _somebody_else() if args.neighbour else None
        try:
            while len(rows) < num:
                rows.append(session(executor))
                print(len(rows), rows[-1], flush=True)
                if kept:
                    with kept.open("ab") as file:
                        file.write(msgspec.json.encode(rows[-1]) + b"\n")
        finally:
            executor.close()
            if neighbour is not None:
                os.kill(neighbour, signal.SIGKILL)
    counts = Counter(row.verdict for row in rows)
    halves = sorted(row.half_width for row in rows)
    lines = [
        f"{len(rows)} sessions of a small program against itself: fresh pairs of processes in turns of 0.1 s, as a "
        f"confirmation runs them, at least {MIN_SETS} pairs, until the interval is within {WIDE:.0%} to either side or "
        f"{SESSION_S:.0f} s are over.",
        "A neighbour burns one core for 2 s of every 6." if args.neighbour else "",
        "",
        *(f"- {verdict}: {count}" for verdict, count in sorted(counts.items())),
        f"- half-width of the interval: median {median(halves):.1%}, largest {halves[-1]:.1%}",
        f"- seconds: median {median(row.seconds for row in rows):.0f}",
        "",
        "| session | verdict | half-width | pairs | seconds | ratio |",
        "|---|---|---|---|---|---|",
        *(
            f"| {n + 1} | {row.verdict} | {row.half_width:.1%} | {row.num_pairs} | {row.seconds:.0f} | {row.reason} |"
            for n, row in enumerate(rows)
        ),
    ]
    if args.neighbour:
        write("against-itself-beside-a-neighbour", "A program against itself beside a busy neighbour", lines)
    else:
        write("against-itself", "A program against itself", lines)


if __name__ == "__main__":
    main()
