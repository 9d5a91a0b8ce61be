"""Keeps the value of every loss that backward is called on, without waiting for the device."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

MAX_PENDING = 256
"""Values kept on a device before they are fetched in one copy."""


class Losses:
    """The loss curve of this process, as 64-bit floats in `losses-<pid>.bin`.

    Args:
        folder: where the file goes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._values = array("d")
        self._pending: list[Any] = []
        self.scaled: tuple[Callable[[], Any], Any] | None = None
        """A loss that a GradScaler has scaled last (weakly), and what it was before."""

    def keep(self, tensors: Any) -> None:
        """Keep the value of a scalar loss; anything else is passed over."""
        loss = tensors[0] if isinstance(tensors, (tuple, list)) and tensors else tensors
        if getattr(loss, "numel", lambda: 0)() != 1:
            return
        loss = self._unscaled(loss).detach()
        if loss.device.type == "cpu":
            self._values.append(float(loss))
            return
        self._pending.append(loss.clone())
        if len(self._pending) >= MAX_PENDING:
            self._fetch()

    def _unscaled(self, loss: Any) -> Any:
        """Return what a loss was before it was scaled: the scale changes while training goes on."""
        scaled, self.scaled = self.scaled, None
        return scaled[1] if scaled is not None and scaled[0]() is loss else loss

    def _fetch(self) -> None:
        import torch

        if self._pending:
            values = torch.stack([loss.reshape(()).double() for loss in self._pending]).cpu().tolist()
            self._values.extend(values)
            self._pending.clear()

    def flush(self) -> None:
        """Append what is pending to the file."""
        self._fetch()
        if self._values:
            with (self._folder / f"losses-{os.getpid()}.bin").open("ab") as file:
                self._values.tofile(file)
            del self._values[:]

    def after_fork(self) -> None:
        """In a forked child: forget the parent's losses."""
        del self._values[:]
        self._pending.clear()
