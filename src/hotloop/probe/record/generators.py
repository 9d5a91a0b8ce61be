"""The global random number generators of a process: whether something drew from them, and how to put them back."""

from __future__ import annotations

import random
import sys
from typing import Any


class GlobalGenerators:
    """The states of Python's, NumPy's and torch's global generators at one moment."""

    def __init__(self) -> None:
        import torch

        numpy = sys.modules.get("numpy")
        self._python = random.getstate()
        self._numpy: Any = numpy.random.get_state(legacy=False) if numpy is not None else None
        self._torch = torch.get_rng_state()

    def drawn(self) -> tuple[str, ...]:
        """Return the names of the generators that were drawn from since."""
        import torch

        names: list[str] = []
        if random.getstate() != self._python:
            names.append("random")
        if self._numpy is not None and not _same_numpy(self._numpy, _numpy_state()):
            names.append("numpy.random")
        if not torch.equal(torch.get_rng_state(), self._torch):
            names.append("torch")
        return tuple(names)

    def restore(self) -> None:
        """Put the generators back to where they were."""
        import torch

        random.setstate(self._python)
        if self._numpy is not None:
            sys.modules["numpy"].random.set_state(self._numpy)
        torch.set_rng_state(self._torch)


def _numpy_state() -> Any:
    return sys.modules["numpy"].random.get_state(legacy=False)


def _same_numpy(before: Any, after: Any) -> bool:
    inner, now = before["state"], after["state"]
    return bool(
        inner["pos"] == now["pos"]
        and (inner["key"] == now["key"]).all()
        and before["has_gauss"] == after["has_gauss"]
    )
