"""A program against itself: sessions of fresh pairs, none of which may come out faster.

python -m benchmarks.tune.against_itself [--sessions 20]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.tune.page import write
from hotloop.launch.isolation.decide import plan_isolation
from hotloop.launch.isolation.scratch import scratch_root
from hotloop.model.observation import Anchor
from hotloop.stats.floor import aa_floor, pair_spread
from hotloop.stats.verdict import decide
from hotloop.tune.design.block_length import Blocks
from hotloop.tune.executor import SetOrder, SetRecord
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
ROUNDS, PAIRS = 8, 3


def session(executor: DuetExecutor) -> tuple[str, float, str]:
    """Return the verdict of one session, its floor, and its numbers: one pair for the floor, three for the verdict."""
    floor_pairs = [_pair(executor)]
    spread = pair_spread(floor_pairs)
    pairs = [_pair(executor) for _ in range(PAIRS)]
    decision = decide(pairs, floor=aa_floor(floor_pairs), prior_sd=spread.sd, prior_df=spread.df)
    return decision.verdict.value, aa_floor(floor_pairs), decision.reason


def _pair(executor: DuetExecutor) -> tuple[float, ...]:
    record = executor.run(SetOrder(plans=((), ()), max_rounds=ROUNDS), lambda _: range(2))
    assert isinstance(record, SetRecord), record
    return record.log_ratios((0,), 1)


def main() -> None:
    """Run the sessions and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=20)
    num = parser.parse_args().sessions
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
        blocks = Blocks(num_steps=300, discard=20, warm_steps=300, max_rounds=None)
        executor = DuetExecutor(setting, blocks, lambda _: None)
        rows = []
        for number in range(num):
            rows.append(session(executor))
            print(number + 1, *rows[-1], flush=True)
        executor.close()
    counts = Counter(verdict for verdict, _, _ in rows)
    lines = [
        f"{num} sessions of a small program against itself, {PAIRS} fresh pairs of {ROUNDS} blocks each:",
        "",
    ]
    lines += [f"- {verdict}: {count}" for verdict, count in sorted(counts.items())]
    lines += ["", "| session | floor | verdict and ratio |", "|---|---|---|"]
    lines += [
        f"| {n + 1} | {floor:.3f} | {verdict}: {reason} |" for n, (verdict, floor, reason) in enumerate(rows)
    ]
    write("against-itself", "A program against itself", lines)


if __name__ == "__main__":
    main()
