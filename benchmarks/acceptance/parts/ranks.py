"""One rank under torchrun with a host name and a port of its own: it starts in a trial, is frozen, and goes on."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterator

from benchmarks.acceptance.place import Place, both
from benchmarks.acceptance.row import Row
from hotloop.tune.design.block_length import Blocks
from hotloop.tune.executor import Rounds, SetOrder, SetRecord

FROZEN_S = 10


def run(place: Place) -> Iterator[Row]:
    """Run sets of two arms of it: with `--standalone`, and as people type it."""
    blocks = Blocks(num_steps=5, discard=1, warm_steps=5, max_rounds=None)
    for words in (("--standalone",), ()):
        program = place.command("gpt", "--ranks", "--steps", str(10**9))[1:]
        command = [sys.executable, "-m", "torch.distributed.run", *words, "--nproc-per-node", "1", *program]
        with place.executor(command, blocks) as (runner, _):
            record = runner.run(SetOrder(plans=((), ()), max_rounds=6), _pausing)
        rounds = len(record.rounds) if isinstance(record, SetRecord) else 0
        yield Row(
            what=f"rounds of two arms under torchrun {' '.join(words)}, with {FROZEN_S} s frozen between",
            ours=float(rounds),
            truth=6.0,
            within=0.0,
            how="what was ordered",
        )


def _pausing(rounds: Rounds) -> Collection[int]:
    """Both arms go on, after a while."""
    if len(rounds) == 3:
        time.sleep(FROZEN_S)
    return both(rounds)
