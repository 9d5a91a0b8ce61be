"""One process that trains with an instrument on and off in turn.

    python -m benchmarks.overhead.measure MODEL SECONDS INSTRUMENT

Prints a JSON object: the median step without, and for the typical step (the mean of each block's, those left out that
took twice the median) and for all CPU time the log ratios on/off of its ABBA blocks.
"""

from __future__ import annotations

import itertools
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.overhead.instruments import INSTRUMENTS, Instrument

NUM_SAMPLES = 4096
"""Epochs of 128 steps: short ones."""
WARM_UP_S = 4.0
"""Instruments look at everything first: hotloop times each of the first steps, then bursts of them."""
BLOCK_S = 0.15
"""Long enough for a flush of the recorder in most blocks, short enough for many blocks against drift."""


def program(name: str) -> tuple[nn.Module, Callable[[], None]]:
    """Return a model and a function that takes one step of its training loop, loader included."""
    if name == "mlp":
        model: nn.Module = nn.Sequential(
            nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10)
        )
        inputs = torch.randn(NUM_SAMPLES, 256)
    else:
        model = nn.Sequential(
            *(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.AdaptiveAvgPool2d(1)),
            *(nn.Flatten(), nn.Linear(64, 10)),
        )
        inputs = torch.randn(NUM_SAMPLES, 3, 16, 16)
    data = TensorDataset(inputs, torch.randint(0, 10, (NUM_SAMPLES,)))
    loader = DataLoader(data, batch_size=32, shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    batches: Iterator[Any] = itertools.chain.from_iterable(itertools.repeat(loader))

    def step() -> None:
        images, labels = next(batches)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return model, step


def block(instrument: Instrument, num: int) -> tuple[list[float], float]:
    """Return the wall seconds of each of so many steps and the CPU seconds of all; two before them are not counted."""
    step, clock = instrument.step, time.perf_counter
    for _ in range(2):
        step()
    times = []
    cpu = time.thread_time()
    for _ in range(num):
        began = clock()
        step()
        times.append(clock() - began)
    return times, time.thread_time() - cpu


def _typical(times: list[float]) -> float:
    """Return the mean, in seconds, without what others did to some steps; phases are timed in some steps only."""
    limit = 2 * statistics.median(times)
    return statistics.fmean(spent for spent in times if spent < limit)


def main(name: str, seconds: float, instrument_name: str) -> None:
    """Alternate blocks for so long, then print."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    instrument = INSTRUMENTS[instrument_name](partial(program, name))
    warm_up_end = time.monotonic() + WARM_UP_S
    while time.monotonic() < warm_up_end:
        instrument.step()
    num = max(4, round(BLOCK_S / (block(instrument, 10)[1] / 10)))
    ratios: dict[str, list[float]] = {"typical": [], "cpu": []}
    steps_s: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        times: dict[bool, list[float]] = {True: [], False: []}
        cpu = {True: 0.0, False: 0.0}
        for on in (False, True, True, False):
            instrument.switch(on=on)
            walls, spent = block(instrument, num)
            times[on] += walls
            cpu[on] += spent
        steps_s.append(statistics.median(times[False]))
        ratios["typical"].append(math.log(_typical(times[True]) / _typical(times[False])))
        ratios["cpu"].append(math.log(cpu[True] / cpu[False]))
    instrument.switch(on=False)
    print(json.dumps({"step_s": statistics.median(steps_s), **ratios}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), sys.argv[3])
