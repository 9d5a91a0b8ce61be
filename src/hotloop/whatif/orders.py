"""What the probe is told to measure, most promising first, and for how many steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate
from hotloop.optimize.program.cores import cores_per_process
from hotloop.optimize.registry import get
from hotloop.probe.windows.knob_blocks import Shape
from hotloop.whatif import batch_sizes, cached_batch, loader_alone, transfer_alone

CACHED, LOADER, TRANSFER, BATCHES = "cached batch", "loader alone", "transfer alone", "batch sizes"
BLOCK_S = 0.35
"""Within one process there is little to average away."""
MAX_EPOCH_S = 2.0
"""Epochs up to this long are timed whole, with the start of the workers and the evaluation between them."""
ROUNDS = 3
"""The fewest block ratios with an interval (`stats.pairs.MIN_BLOCKS`)."""
WARM_STEPS, WARM_S = 6, 1.0
"""As in a trial (`tune.design.block_length`)."""
LOADER_S = 0.8
"""To drive the loader with each number of workers; at least three batches."""
MAX_COUNTS = 5
BATCHES_S = 10.0
"""For the model on batches of all sizes."""
_LATE = ("cpu_allocator", "compile")
"""Malloc is not quite as it was after it, and compilation may take three quarters of the time: what comes before is
measured then. Still later is what is expected to be much slower: its steps may take the others' time."""
MUCH_SLOWER = 0.5


def shape(observation: Observation) -> Shape:
    """Return blocks that suit the program's step."""
    assert observation.step is not None
    return _shape(observation.step.median_s, observation.epoch_steps)


def least_s(startup_s: float, step_s: float) -> float:
    """Return what a further run takes until one knob has been off, on and off again: with less it tells nothing.

    Args:
        startup_s: from the start of the command to its first steady step.
        step_s: how long a step takes.
    """
    blocks = _shape(step_s, None)
    return startup_s + step_s * (blocks.warm_steps + 3 * (blocks.discard + blocks.num_steps))


def _shape(step_s: float, epoch: int | None) -> Shape:
    num = max(2, math.ceil(BLOCK_S / step_s))
    if epoch and epoch * step_s <= MAX_EPOCH_S:
        num = epoch * max(1, round(num / epoch))
    return Shape(
        warm_steps=max(WARM_STEPS, min(200, math.ceil(WARM_S / step_s))),
        num_steps=num,
        discard=min(max(1, num // 6), 20),
        rounds=ROUNDS,
    )


def whatif_config(observation: Observation) -> dict[str, Any]:
    """Return the shape as the probe's orders hold it."""
    return asdict(shape(observation))


def ceiling_orders(observation: Observation) -> list[dict[str, Any]]:
    """Return the orders for the ceilings; none where no DataLoader feeds the steps."""
    if not any(loader.used_in_step for loader in observation.program.loaders):
        return []
    counts = _worker_counts(observation)
    orders = [_order(LOADER, loader_alone.LoaderAlone, {"counts": counts, "seconds": LOADER_S})]
    if observation.program.device != "cpu":
        orders.append(_order(TRANSFER, transfer_alone.TransferAlone, {}))
    return [*orders, _order(CACHED, cached_batch.CachedBatch, {})]


def batch_orders(observation: Observation) -> list[dict[str, Any]]:
    """Return the order to try other batch sizes, for a program that answers batch by batch."""
    found = observation.inference
    if found is None or found.between_tokens is not None:
        return []
    return [_order(BATCHES, batch_sizes.BatchSizes, {"seconds": BATCHES_S})]


def _worker_counts(observation: Observation) -> list[int]:
    """0 and powers of two up to the cores; of many cores the largest."""
    cores = cores_per_process(observation)
    powers = [1 << power for power in range(cores.bit_length()) if 1 << power <= cores]
    return [0, *powers][: MAX_COUNTS - 1] + ([powers[-1]] if len(powers) >= MAX_COUNTS else [])


def _order(name: str, cls: type, params: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "module": cls.__module__, "cls": cls.__name__, "params": params}


def knob_orders(candidates: Sequence[Candidate]) -> list[dict[str, Any]]:
    """Return the orders for every candidate that can be switched in a running program."""
    ordered = sorted(candidates, key=_turn)
    return [
        get(one.name).order(msgspec.to_builtins(one.params), name=one.label, knob=True)
        for one in ordered
        if get(one.name).knob(one.params) is not None
    ]


def _turn(candidate: Candidate) -> tuple[int, float]:
    late = _LATE.index(candidate.name) + 1 if candidate.name in _LATE else 0
    return late if candidate.prior >= MUCH_SLOWER else len(_LATE) + 1, -candidate.prior
