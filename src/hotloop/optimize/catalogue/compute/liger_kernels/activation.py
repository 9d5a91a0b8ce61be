"""The activation of liger_kernels: Liger's layers in the place of those of a transformers model."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from hotloop.probe.activation.activation import Activation

_FUSED = "fused_linear_cross_entropy"


class LigerLayers(Activation):
    """Has Liger exchange what it knows in each model of transformers, before the first training forward.

    Args:
        fused_loss: also the last layer and the loss, together.
    """

    def __init__(self, fused_loss: bool) -> None:
        self._fused_loss = fused_loss
        self._done: list[str] = []
        self._fuses: list[bool] = []
        self._unknown: list[str] = []

    def on_root(self, module: Any) -> None:
        """Exchange the layers of the models in one root."""
        from liger_kernel.transformers import monkey_patch as liger

        for model in _models(module):
            kind = model.config.model_type
            apply = liger.MODEL_TYPE_TO_APPLY_LIGER_FN.get(kind)
            if apply is None:
                self._unknown.append(kind)
                continue
            # Arguments that the function of a kind of model does not have are left out without a word.
            self._fuses.append(self._fused_loss and _FUSED in inspect.signature(apply).parameters)
            liger._apply_liger_kernel_to_instance(
                model=model, cross_entropy=False, **{_FUSED: self._fused_loss}
            )
            self._done.append(kind)

    def effect(self) -> tuple[bool, str]:
        """Return which models were changed."""
        if self._done and self._fused_loss and not any(self._fuses):
            return False, f"Liger has no fused loss for {', '.join(self._done)}"
        if self._done:
            loss = " and loss" if self._fused_loss else ""
            return True, f"Liger's layers{loss} in {', '.join(self._done)}"
        if self._unknown:
            return False, f"Liger has no layers for {', '.join(self._unknown)}"
        return False, "no model of transformers was trained"


def _models(module: Any) -> Iterator[Any]:
    """Return the outermost models of transformers in a root, itself included."""
    from transformers import PreTrainedModel

    if isinstance(module, PreTrainedModel):
        yield module
        return
    for child in module.children():
        yield from _models(child)
