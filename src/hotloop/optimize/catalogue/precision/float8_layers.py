"""The activation of float8_training: torchao's layers in the place of the model's own."""

from __future__ import annotations

from typing import Any

from hotloop.model.quantities import counted
from hotloop.probe.activation.activation import Activation

MULTIPLE = 16
"""Of rows and columns, for the matrix units."""


class Float8Layers(Activation):
    """Exchanges linear layers before the first training forward; the parameters stay the same objects.

    Args:
        recipe: of torchao: `tensorwise` or `rowwise`.
    """

    def __init__(self, recipe: str) -> None:
        self._recipe = recipe
        self._num = 0
        self._num_left = 0

    def on_root(self, module: Any) -> None:
        """Exchange the layers of one root."""
        from torchao.float8 import Float8LinearConfig, convert_to_float8_training

        convert_to_float8_training(
            module,
            module_filter_fn=_takes,
            config=Float8LinearConfig.from_recipe_name(self._recipe),
        )
        kinds = [type(layer).__name__ for layer in module.modules()]
        self._num += kinds.count("Float8Linear")
        self._num_left += kinds.count("Linear")

    def effect(self) -> tuple[bool, str]:
        """Return how many layers were exchanged."""
        if not self._num:
            return False, f"none of {counted(self._num_left, 'linear layer')} can compute in float8"
        left = f", {self._num_left} left" if self._num_left else ""
        return True, f"{counted(self._num, 'linear layer')} in float8 ({self._recipe} scales){left}"


def _takes(layer: Any, name: str) -> bool:
    """Return whether a layer is exchanged: not the whole model, which nobody holds by an attribute."""
    import torch

    plain = type(layer) is torch.nn.Linear and bool(name)
    return plain and fits(layer.in_features, layer.out_features) and not _is_hooked(layer)


def fits(in_features: int, out_features: int) -> bool:
    """Return whether the matrix units take a weight of this shape."""
    return in_features % MULTIPLE == 0 and out_features % MULTIPLE == 0


def _is_hooked(layer: Any) -> bool:
    """Return whether something is attached to a layer that a new one would not have."""
    return bool(layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks)
