"""The buffers of a module as its forward found them: running statistics are updated by the forward alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hotloop.optimize.recomputation.copies import Copies, clone, detached_copy

Taken = list[tuple[Any, str, Any]]
"""Parts of a module, the names of their buffers, and copies of those."""


class Buffers:
    """The buffers of a module.

    Args:
        module: with its parts.
        copies: of those that stay as they are.
    """

    def __init__(self, module: Any, copies: Copies) -> None:
        self._module = module
        self._copies = copies
        self._moving: set[tuple[int, str]] | None = None
        """Part and name of buffers that the first forward changed; None: before it. Values are compared: kernels, and
        changes by way of `.data`, leave a tensor's version as it is."""

    def taken(self) -> Taken:
        """Return copies."""
        made: dict[int, Any] = {}
        found: Taken = []
        for part, name, buffer in named_buffers(self._module):
            if id(buffer) not in made:
                moves = self._moving is None or (id(part), name) in self._moving
                made[id(buffer)] = detached_copy(buffer) if moves else self._copies.of(buffer)
            found.append((part, name, made[id(buffer)]))
        return found

    def constant(self) -> Iterator[Any]:
        """Yield those that are not expected to change; running statistics are."""
        from torch.nn.modules.batchnorm import _NormBase

        for part, _, buffer in named_buffers(self._module):
            if not isinstance(part, _NormBase):
                yield buffer

    def compare(self, taken: Taken) -> None:
        """Look after the first forward which buffers it changed.

        Args:
            taken: before it.
        """
        if self._moving is None:
            self._moving = {(id(part), name) for part, name, _ in changed(taken)}


def named_buffers(module: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yield the parts of a module that have buffers, with the name of each, and the buffer."""
    for part in module.modules():
        for name, buffer in part._buffers.items():
            if buffer is not None:
                yield part, name, buffer


def changed(taken: Taken) -> Taken:
    """Return those whose values are others by now."""
    return [(part, name, copy) for part, name, copy in taken if not _equal(part._buffers.get(name), copy)]


def _equal(buffer: Any, copy: Any) -> bool:
    import torch

    if buffer is None or (buffer.dtype, buffer.device) != (copy.dtype, copy.device):
        return False
    return bool(torch.equal(buffer, copy))


@contextmanager
def exchanged(taken: Taken) -> Iterator[None]:
    """Put clones of the copies in the place of the buffers; what is written to them is dropped at the end."""
    own = [(part, name, part._buffers.get(name)) for part, name, _ in taken]
    made: dict[int, Any] = {}
    try:
        for part, name, copy in taken:
            if id(copy) not in made:
                made[id(copy)] = clone(copy)
            part._buffers[name] = made[id(copy)]
        yield
    finally:
        for part, name, buffer in own:
            part._buffers[name] = buffer
