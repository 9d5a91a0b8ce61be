"""Keeps the value of every loss that backward is called on, without waiting for the device."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hotloop.probe.record.call_site import user_stack

MAX_PENDING = 256
"""Values kept on a device before they are fetched in one copy."""
MAX_SITES = 32
"""A program that calls backward from ever new places has one curve, not thousands."""


class Losses:
    """The loss curves of this process: pairs of 64-bit floats, the place of the backward call (0, 1, ...) and the loss,
    in `losses-<pid>.bin`.

    A GAN calls backward in several places of a step; its losses are several curves, each by the lines it comes from.

    Args:
        folder: where the file goes.
        stack: the program's lines that a backward is called from.
    """

    def __init__(self, folder: Path, stack: Callable[[], object] = user_stack) -> None:
        self._folder = folder
        self._stack = stack
        self._values = array("d")
        self._pending: list[tuple[int, Any]] = []
        self._sites: dict[object, int] = {}
        self.scaled: tuple[Callable[[], Any], Any] | None = None
        """A loss that a GradScaler has scaled last (weakly), and what it was before."""

    def keep(self, tensors: Any) -> None:
        """Keep the value of a scalar loss; anything else is passed over."""
        loss = tensors[0] if isinstance(tensors, (tuple, list)) and tensors else tensors
        if getattr(loss, "numel", lambda: 0)() != 1:
            return
        site = self._site()
        loss = self._unscaled(loss).detach()
        if loss.device.type == "cpu":
            self._values.extend((site, float(loss)))
            return
        self._pending.append((site, loss.clone()))
        if len(self._pending) >= MAX_PENDING:
            self._fetch()

    def _unscaled(self, loss: Any) -> Any:
        """Return what a loss was before it was scaled: the scale changes while training goes on."""
        scaled, self.scaled = self.scaled, None
        return scaled[1] if scaled is not None and scaled[0]() is loss else loss

    def _site(self) -> int:
        stack = self._stack()
        if stack not in self._sites and len(self._sites) >= MAX_SITES:
            return MAX_SITES
        return self._sites.setdefault(stack, len(self._sites))

    def _fetch(self) -> None:
        import torch

        if self._pending:
            values = torch.stack([loss.reshape(()).double() for _, loss in self._pending]).cpu().tolist()
            for (site, _), value in zip(self._pending, values, strict=True):
                self._values.extend((site, value))
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
