"""The demo's plan against the one that a person wrote, side by side in fresh processes.

    python -m benchmarks.tune.by_hand FOLDER [--sets 5]

FOLDER is where `hotloop demo` was run: it holds the program, its data, its session. The plan by hand is what stands in
examples/jpeg_classifier/train_by_hand.py, as optimizations of the catalogue, so that both run in the same sets.
"""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path
from typing import Any

from benchmarks.tune.page import write
from benchmarks.tune.side_by_side import SideBySide, inside, shown
from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate
from hotloop.model.tuning import TuneResult
from hotloop.optimize.registry import get
from hotloop.store.session import find_session

BY_HAND: dict[str, dict[str, Any]] = {
    "debug_apis_off": {},
    "thread_count": {"num_threads": 1},
    "loader_workers": {"num_workers": 2, "persistent_workers": True},
    "loader_prefetch": {"prefetch_factor": 4},
    "channels_last": {},
    "fused_optimizer": {"implementation": "fused"},
    "openmp_wait_policy": {},
    "cpu_allocator": {"allocator": "glibc"},
}
FAST_BF16 = "avx512_bf16"
"""By hand too, bfloat16 is used only where the processor has instructions for it."""


def main() -> None:
    """Run the program as it was, hotloop's plan and the one by hand, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", type=int, default=5)
    args = parser.parse_args()
    with inside(args.folder, {}):
        with contextlib.closing(find_session(Path.cwd())) as session:
            result, observation = session.get("result", TuneResult), session.get("observation", Observation)
        assert result is not None
        assert observation is not None
        wanted = BY_HAND | ({"autocast_bf16": {}} if FAST_BF16 in observation.machine.get("isa", ()) else {})
        plan = tuple(
            Candidate(name=step.name, params=step.params, numerics=step.numerics)
            for step in result.plan.steps
        )
        by_hand = tuple(
            Candidate(name=name, params=params, numerics=get(name).numerics)
            for name, params in wanted.items()
        )
        ran = SideBySide(result.command, observation, ((), plan, by_hand), args.sets)
    lines = [
        f"{args.sets} sets of fresh processes that take turns, 95% intervals over sets and blocks.",
        "",
        f"- hotloop's plan over the program as it was: {shown(ran.ratio(0, 1))}",
        f"- by hand over the program as it was: {shown(ran.ratio(0, 2))}",
        f"- hotloop's plan over by hand (1 is as good): {shown(ran.ratio(2, 1))}",
        "",
        f"hotloop's plan: {', '.join(step.label for step in plan) or 'empty'}",
        f"by hand: {', '.join(step.label for step in by_hand)}",
    ]
    write("by-hand", "The demo, tuned by hotloop and by hand", lines)


if __name__ == "__main__":
    main()
