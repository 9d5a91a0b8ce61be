"""One process that trains with the hooks on and off in turn: `python -m benchmarks.overhead.measure MODEL SECONDS`.

Prints a JSON object: the median step and, for wall and for CPU time, the log ratios on/off of its ABBA blocks.
"""

from __future__ import annotations

import itertools
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import optimizer as optim
from torch.utils.data import DataLoader, TensorDataset, dataloader

from hotloop.probe.config import ProbeConfig
from hotloop.probe.control import ControlPage

BLOCK_S = 0.15
"""Long enough for a flush of the recorder in most blocks, short enough for many blocks against drift."""
WARM_UP_STEPS = 100
_PATCHED: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (torch, ("save",)),
    (torch.autograd, ("backward", "grad")),
    (DataLoader, ("__init__", "__iter__")),
    (dataloader._BaseDataLoaderIter, ("__init__", "__next__")),
    (optim.Optimizer, ("__init__",)),
)
_HOOK = "_compiled_call_impl"


class Hooks:
    """Everything the probe puts into a process, to be taken out and put back."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._off = [(owner, name, getattr(owner, name)) for owner, names in _PATCHED for name in names]

    def installed(self) -> None:
        """Note what is there once the probe is in and has found its root module."""
        self._on = [(owner, name, getattr(owner, name)) for owner, name, _ in self._off]
        self._before, self._after = (
            dict(optim._global_optimizer_pre_hooks),
            dict(optim._global_optimizer_post_hooks),
        )
        self._hook = self._model.__dict__[_HOOK]

    def switch(self, *, on: bool) -> None:
        """Put all hooks in, or take all out."""
        for owner, name, value in self._on if on else self._off:
            setattr(owner, name, value)
        for hooks, values in (
            (optim._global_optimizer_pre_hooks, self._before),
            (optim._global_optimizer_post_hooks, self._after),
        ):
            hooks.clear()
            if on:
                hooks.update(values)
        self._model.__dict__.pop(_HOOK, None)
        if on:
            self._model.__dict__[_HOOK] = self._hook


def program(name: str) -> tuple[nn.Module, Callable[[], None]]:
    """Return a model and a function that takes one step of its training loop, loader included."""
    if name == "mlp":
        model: nn.Module = nn.Sequential(
            nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10)
        )
        inputs = torch.randn(512, 256)
    else:
        model = nn.Sequential(
            *(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.AdaptiveAvgPool2d(1)),
            *(nn.Flatten(), nn.Linear(64, 10)),
        )
        inputs = torch.randn(512, 3, 16, 16)
    data = TensorDataset(inputs, torch.randint(0, 10, (512,)))
    loader = DataLoader(data, batch_size=32, shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    batches: Iterator[Any] = itertools.chain.from_iterable(itertools.repeat(loader))

    def step() -> None:
        images, labels = next(batches)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return model, step


def install(folder: Path) -> None:
    """Put the probe into this process as the launcher would."""
    from hotloop.probe.install import _install

    ControlPage.create(folder / "control").close()
    _install(ProbeConfig(folder=str(folder)))


def block(step: Callable[[], None], num: int) -> tuple[float, float]:
    """Return the wall and the CPU seconds of so many steps; two more before them are not counted."""
    for _ in range(2):
        step()
    wall, cpu = time.perf_counter(), time.thread_time()
    for _ in range(num):
        step()
    return time.perf_counter() - wall, time.thread_time() - cpu


def main(name: str, seconds: float, folder: Path) -> None:
    """Alternate blocks for so long, then print."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, _ = program(name)
    hooks = Hooks(model)
    install(folder)
    model, step = program(name)
    hooks._model = model
    for _ in range(WARM_UP_STEPS):
        step()
    hooks.installed()
    num = max(4, round(BLOCK_S / (block(step, 10)[1] / 10)))
    ratios: dict[str, list[float]] = {"wall": [], "cpu": []}
    steps_s: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        spent = {True: [0.0, 0.0], False: [0.0, 0.0]}
        for on in (False, True, True, False):
            hooks.switch(on=on)
            for index, value in enumerate(block(step, num)):
                spent[on][index] += value
        for index, clock in enumerate(("wall", "cpu")):
            ratios[clock].append(math.log(spent[True][index] / spent[False][index]))
        steps_s.append(spent[False][1] / (2 * num))
    print(json.dumps({"step_s": statistics.median(steps_s), **ratios}))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(sys.argv[1], float(sys.argv[2]), Path(scratch))
