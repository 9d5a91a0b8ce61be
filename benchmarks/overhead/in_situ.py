"""What the hook points add to a step, measured where they are: the time between the program's call and torch's own.

    python -m benchmarks.overhead.in_situ MODEL SECONDS

The kernels between the calls run and clear the caches, but their own time, which varies by more than what is looked
for, is left out. Prints a JSON object: microseconds that a step takes more with the hooks in, block by block (off, on,
on, off): for steps that are timed by phase and for steps that pass. What hooks do to the kernels' caches is not in it.
"""

from __future__ import annotations

import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, dataloader

from benchmarks.overhead import measure
from benchmarks.overhead.instruments import Hotloop
from hotloop.probe.record.burst_timing import NEVER

BLOCK_STEPS = 128
WARM_STEPS = 64
"""Of a block: what Python had specialized for other callables is learned anew."""
PREEMPTED_S = 0.0005
"""Between two calls this much time is somebody else's."""
clock = time.perf_counter


class Stub:
    """Stands for a function of torch's; remembers when it was entered and left."""

    entered = left = 0.0

    def around(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function to put in its place."""

        def stub(*args: Any, **kwargs: Any) -> Any:
            self.entered = clock()
            try:
                return original(*args, **kwargs)
            finally:
                self.left = clock()

        return stub


class Updates(torch.optim.Optimizer):
    """An optimizer whose own part of `step` can be told from what torch and the hooks do around it."""

    stub = Stub()

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, {"lr": 1e-4})
        self._inner = torch.optim.Adam([*self.param_groups[0]["params"]], lr=1e-4)
        self._adam = torch.optim.Adam.step.__wrapped__  # type: ignore[attr-defined]

    def step(self, closure: Any = None) -> None:
        """Take a step of Adam, without hooks of its own."""
        self.stub.entered = clock()
        self._adam(self._inner, closure)
        self.stub.left = clock()


class Program:
    """A training loop that adds up the time between its calls and torch's."""

    def __init__(self, name: str) -> None:
        self.fetch, self.forward, self.backward = Stub(), Stub(), Stub()
        iterator: Any = dataloader._BaseDataLoaderIter
        iterator.__next__ = self.fetch.around(iterator.__next__)
        torch.autograd.backward = self.backward.around(torch.autograd.backward)
        self.name = name
        self.spent = 0.0

    def __call__(self) -> tuple[nn.Module, Callable[[], None]]:
        """Make the model and the step."""
        model, _ = measure.program(self.name)
        model._call_impl = self.forward.around(model._call_impl)
        optimizer = Updates(model.parameters())
        shape = (256,) if self.name == "mlp" else (3, 16, 16)
        inputs = torch.randn(measure.NUM_SAMPLES, *shape)
        data = torch.utils.data.TensorDataset(inputs, torch.randint(0, 10, (len(inputs),)))
        batches: Any = itertools.chain.from_iterable(
            itertools.repeat(DataLoader(data, batch_size=32, shuffle=True))
        )

        def step() -> None:
            began = clock()
            images, labels = next(batches)
            self._add(began, self.fetch)
            for parameter in model.parameters():
                parameter.grad = None
            began = clock()
            output = model(images)
            self._add(began, self.forward)
            loss = nn.functional.cross_entropy(output, labels)
            began = clock()
            loss.backward()
            self._add(began, self.backward)
            began = clock()
            optimizer.step()
            self._add(began, optimizer.stub)

        return model, step

    def _add(self, began: float, stub: Stub) -> None:
        spent = (stub.entered - began) + (clock() - stub.left)
        self.spent += spent if spent < PREEMPTED_S else 0.0


def main(name: str, seconds: float) -> None:
    """Alternate blocks for so long, timed steps and passed ones in turn, then print."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    program = Program(name)
    instrument = Hotloop(program)
    pace = instrument.pace
    added: dict[str, list[float]] = {"timed": [], "passed": []}
    steps_s: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for kind, differences in added.items():
            instrument.switch(on=True)
            pace._become(lean=kind == "passed")
            pace.turn_at = NEVER
            pace._until = pace._allowed = (
                NEVER if kind == "passed" else 0
            )  # an epoch interrupts a rest for one step
            spent = {True: 0.0, False: 0.0}
            for on in (False, True, True, False):
                instrument.switch(on=on)
                for _ in range(WARM_STEPS):
                    instrument.step()
                program.spent = 0.0
                began = clock()
                for _ in range(BLOCK_STEPS):
                    instrument.step()
                if not on:
                    steps_s.append((clock() - began) / BLOCK_STEPS)
                spent[on] += program.spent
            differences.append((spent[True] - spent[False]) / (2 * BLOCK_STEPS) * 1e6)
    instrument.switch(on=False)
    print(json.dumps({"step_s": statistics.median(steps_s), **added}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
