"""Keeps a sketch of what each forward of a program that trains nothing is given and gives.

A sketch is a few sums of all values with fixed random signs: the distance of two sketches is, on average, that of the
tensors (Alon, Matias, Szegedy 1999; with eight sums within a quarter), so that two runs can be compared afterwards.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hotloop.probe.record.sketch_rows import GIVEN, MADE

MAX_FORWARDS = 512
"""Of a run; more say no more."""
MAX_ON_DEVICE = 64
"""Reading outputs waits for the device, so it is done in an arm's warm-up only."""
MAX_VALUES = 8192
"""Of a tensor; of a larger one every n-th value is taken. A sketch of so many takes some 50 us, off the clock."""
MAX_TENSORS = 4
MAX_PENDING = 64
"""Rows kept on a device before they are fetched in one copy."""


class Outputs:
    """The sketches of this process, rows of 64-bit floats (see `sketch_rows`) in `outputs-<pid>.bin`.

    Args:
        folder: where the file goes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._values = array("d")
        self._pending: list[tuple[list[float], list[Any]]] = []
        self._signs: dict[tuple[int, str], Any] = {}
        self._num = 0
        self._most = MAX_FORWARDS

    @property
    def full(self) -> bool:
        """Whether enough forwards were kept."""
        return self._num >= self._most

    def given(self, args: Any, kwargs: Any) -> list[Any]:
        """Return the sketch of what a forward is given; before the call, which may change it in place."""
        tensors = list(tensors_in((args, kwargs)))[:MAX_TENSORS]
        return [sum(tensor.numel() for tensor in tensors), self._sketch(tensors, GIVEN)]

    def keep(self, slot: int, given: list[Any], output: Any, *, continues: bool) -> None:
        """Keep what a forward gave.

        Args:
            slot: the root.
            given: what it was given.
            output: what it gave.
            continues: it went on with the text of the forward before.
        """
        tensors = [each for each in tensors_in(output) if each.is_floating_point()][:MAX_TENSORS]
        epsilon = max((_epsilon(each) for each in tensors), default=0.0)
        head = [float(slot), float(continues), float(given[0]), epsilon]
        self._pending.append((head, [given[1], self._sketch(tensors, MADE), _largest(tensors)]))
        self._num += 1
        on_cpu = all(each.device.type == "cpu" for each in tensors)
        if not on_cpu:
            self._most = MAX_ON_DEVICE
        if on_cpu or len(self._pending) >= MAX_PENDING:
            self._fetch()

    def _sketch(self, tensors: list[Any], num: int) -> Any:
        """Return so many sums over all tensors, and the number of values that are not finite, as one tensor."""
        import torch

        sums: Any = torch.zeros(num + 1, dtype=torch.float64)
        for tensor in tensors:
            values = some_values(tensor)
            finite = torch.isfinite(values)
            clean = torch.where(finite, values, torch.zeros_like(values))
            made = (self._signs_for(len(values), values, num) * clean).sum(1) / num**0.5
            sums = sums.to(made) + torch.cat([made, (~finite).sum().to(made).reshape(1)])
        return sums

    def _signs_for(self, num_values: int, like: Any, num: int) -> Any:
        import torch

        key = (num_values, f"{like.device}{num}")
        if key not in self._signs:
            generator = torch.Generator().manual_seed(num_values)
            signs = torch.randint(0, 2, (num, num_values), generator=generator)
            self._signs[key] = (2 * signs - 1).to(like)
        return self._signs[key]

    def _fetch(self) -> None:
        import torch

        for head, values in self._pending:
            self._values.extend(head + torch.cat([value.double().cpu() for value in values]).tolist())
        self._pending.clear()

    def flush(self) -> None:
        """Append what is pending to the file."""
        self._fetch()
        if self._values:
            with (self._folder / f"outputs-{os.getpid()}.bin").open("ab") as file:
                self._values.tofile(file)
            del self._values[:]

    def after_fork(self) -> None:
        """In a forked child: forget the parent's."""
        del self._values[:]
        self._pending.clear()
        self._num = 0


def tensors_in(value: Any) -> Iterator[Any]:
    """Yield the tensors in tuples, lists and dictionaries; what a cache holds is not looked at."""
    import torch

    if isinstance(value, torch.Tensor):
        if value.layout is torch.strided and value.numel() and not value.is_complex():
            yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from tensors_in(each)
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from tensors_in(each)


def some_values(tensor: Any, most: int = MAX_VALUES) -> Any:
    """Return at most so many values of a tensor, in the order of its indices, as 64-bit floats where there are such."""
    import torch

    flat = tensor.detach().reshape(-1)
    if len(flat) > most:
        flat = flat[:: len(flat) // most | 1]
    return flat.to(torch.float32 if flat.device.type == "mps" else torch.float64)


def _largest(tensors: list[Any]) -> Any:
    """Return a number that is the same where the same classes, or tokens, are the most likely ones."""
    import torch

    if not tensors or tensors[0].dim() < 2:
        return torch.zeros(1, dtype=torch.float64)
    places = tensors[0].detach().argmax(-1).reshape(-1).double()
    return (places * torch.arange(1, len(places) + 1, device=places.device)).sum().reshape(1)


def _epsilon(tensor: Any) -> float:
    import torch

    return float(torch.finfo(tensor.dtype).eps)
