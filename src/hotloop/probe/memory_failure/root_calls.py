"""The newest call of a model that learns: its batch, its mode, and what no backward has followed yet."""

from __future__ import annotations

import weakref
from types import FrameType
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from hotloop.probe.hook_points.main_input import main_input
from hotloop.probe.instruments.object_sizes import address
from hotloop.probe.memory_failure.live_storages import LiveStorages

EVALUATION = "evaluation"
"""The phase of a forward in evaluation mode that keeps a graph."""


class RootCalls:
    """Is told of the calls of root modules, and of backward passes.

    Calls without gradients, and those of a frozen teacher, say nothing of what keeps a graph.

    Args:
        storages: told of where a graph begins.
    """

    def __init__(self, storages: LiveStorages) -> None:
        self._storages = storages
        self._model: weakref.ref[Any] | None = None
        self._batch: dict[str, Any] | None = None
        self.given: set[int] = set()
        """Addresses of the tensors that it was given."""
        self._training = True
        self._modes_that_learn: set[bool] = set()

    def began(self, module: Any, args: Any, kwargs: Any) -> None:
        """Note a call."""
        learns = any(parameter.requires_grad for parameter in module.parameters())
        if not (learns and torch.is_grad_enabled()):
            return
        self._model, self._training = weakref.ref(module), module.training
        self._batch = _described(main_input(args, kwargs))
        self.given = {address(each) for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)}
        self._storages.forward_began()

    def went_back(self) -> None:
        """Note that a backward follows the newest call."""
        self._modes_that_learn.add(self._training)

    @property
    def evaluates(self) -> bool:
        """Whether the model was called in evaluation mode, in which no backward has ever followed."""
        return not self._training and False not in self._modes_that_learn

    def batch_under_way(self, frame: FrameType | None) -> dict[str, Any] | None:
        """Return samples, tokens and shape of the newest batch; None: its call is over, or it has none."""
        model = self._model() if self._model is not None else None
        while frame is not None and model is not None:
            if frame.f_code.co_name in ("_call_impl", "forward") and frame.f_locals.get("self") is model:
                return self._batch
            frame = frame.f_back
        return None


def _described(first: Any) -> dict[str, Any] | None:
    if first is None:
        return None
    whole = len(first.shape) == 2 and not first.is_floating_point()
    return {
        "samples": int(first.shape[0]),
        "tokens": int(first.numel()) if whole else 0,
        "shape": list(first.shape),
    }
