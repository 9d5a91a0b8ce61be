"""What the plan varies while the program trains on: precision, batch, accumulation, checkpointing, attention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from hotloop.probe.virtual_gpu.corrections import DeviceKernels
from hotloop.probe.virtual_gpu.training import Training

VALUES_UP_TO = 1 << 18
"""Elements of a larger batch that has rows of its own."""
MIN_BLOCKS = 2
"""Modules of one class side by side that are a model's repeated blocks."""


class Configuration:
    """One variation, switched on for a few steps.

    Args:
        order: `{"name", "precision", "batch", "accumulation", "checkpointing", "attention"}`; what is absent stays as
            the program has it. `batch` is a factor.
        training: the program's.
        kernels: of the device.
    """

    def __init__(self, order: dict[str, Any], training: Training, kernels: DeviceKernels) -> None:
        self.order = order
        self._training = training
        self._kernels = kernels
        self._undo: list[Callable[[], None]] = []
        self.missing: str | None = None
        """Why it cannot be had in this program."""
        self.num_resized = 0

    def on(self) -> None:
        """Switch it on."""
        if self.order.get("precision"):
            self._autocast(getattr(torch, self.order["precision"]))
        if self.order.get("attention") and not self._kernels.is_used:
            self.missing = "the program does not call torch's attention"
        if self.order.get("attention"):
            self._kernels.attention = self.order["attention"]
            self._undo.append(lambda: setattr(self._kernels, "attention", None))
        if self.order.get("checkpointing"):
            self._checkpoint()
        if self.order.get("accumulation", 1) > 1:
            self._keep_gradients()

    def off(self) -> None:
        """Take it back."""
        while self._undo:
            self._undo.pop()()

    def resize(self, tensor: Any) -> Any:
        """Return a tensor that goes to the device, with the batch that is wanted."""
        factor = self.order.get("batch", 1) / self.order.get("accumulation", 1)
        size = tensor.shape[0] if tensor.dim() else None
        if factor == 1 or size not in self._training.row_counts or (tensor.is_leaf and tensor.requires_grad):
            return tensor
        wanted = max(1, round(size * factor))
        self.num_resized += 1
        if wanted <= size:
            return tensor[:wanted]
        if (
            tensor.numel() // size * wanted > VALUES_UP_TO
        ):  # values are of no use, and the host has no room for them
            return tensor.detach()[:1].expand(wanted, *tensor.shape[1:])
        return tensor.detach().repeat(-(-wanted // size), *[1] * (tensor.dim() - 1))[:wanted]

    def _autocast(self, dtype: torch.dtype) -> None:
        own: list[tuple[bool, torch.dtype]] = []

        def around(begins: bool) -> None:
            now = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
            if begins:
                own.append(now)
                torch.set_autocast_enabled("cuda", True)
                torch.set_autocast_dtype("cuda", dtype)
            elif own and now == (
                True,
                dtype,
            ):  # else the program's own has ended since, and put back what was before
                torch.set_autocast_enabled("cuda", own[0][0])
                torch.set_autocast_dtype("cuda", own[0][1])
            if not begins:
                own.clear()
                torch.clear_autocast_cache()

        self._training.around_loss.append(around)
        self._undo.append(lambda: self._training.around_loss.remove(around))

    def _checkpoint(self) -> None:
        from torch.utils.checkpoint import checkpoint

        blocks = [block for root in self._training.roots for block in repeated_blocks(root)]
        if not blocks:
            self.missing = "the model has no repeated blocks"
        for block in blocks:
            forward = block.forward

            def again(*args: Any, _forward: Any = forward, **kwargs: Any) -> Any:
                if not torch.is_grad_enabled():
                    return _forward(*args, **kwargs)
                return checkpoint(_forward, *args, use_reentrant=False, preserve_rng_state=False, **kwargs)

            block.forward = again
            self._undo.append(partial(block.__dict__.pop, "forward", None))

    def _keep_gradients(self) -> None:
        """Have gradients live on as between micro-batches: the next forward and backward run beside them."""
        for cls in (torch.optim.Optimizer, nn.Module):
            self._undo.append(partial(setattr, cls, "zero_grad", cls.zero_grad))
            setattr(cls, "zero_grad", lambda *_, **__: None)  # noqa: B010 - a method is exchanged on purpose


def repeated_blocks(root: Any) -> list[Any]:
    """Return a model's repeated blocks: children of one class, with parts of their own; of nested ones the outer.

    Children that have names of their own, not places in a list, and more repeated blocks each than there are of them,
    are models side by side (two encoders): the blocks are theirs.
    """
    children = list(root.children())
    alike = Counter(type(child) for child in children if _is_block(child))
    named = not isinstance(root, (nn.ModuleList, nn.Sequential))
    found: list[Any] = []
    for child in children:
        inner = repeated_blocks(child)
        num = alike[type(child)] if _is_block(child) else 0
        is_model = named and len(inner) > num
        found += [child] if num >= MIN_BLOCKS and not is_model else inner
    return found


def _is_block(module: Any) -> bool:
    """Whether it computes with parts of its own; a list is called part by part, a sequence of blocks is a stage."""
    if isinstance(module, (nn.ModuleList, nn.ModuleDict)):
        return False
    if isinstance(module, nn.Sequential) and repeated_blocks(module):
        return False
    return any(True for _ in module.children()) and any(True for _ in module.parameters())
