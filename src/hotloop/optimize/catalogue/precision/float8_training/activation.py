"""The activation of float8_training: torchao's layers in the place of the model's own."""

from __future__ import annotations

from typing import Any

from hotloop.optimize.reduced_precision.eight_bit_layers import say, takes
from hotloop.probe.activation.activation import Activation


class Float8Layers(Activation):
    """Exchanges linear layers before the first training forward; the parameters stay the same objects.

    Args:
        recipe: of torchao: `tensorwise` or `rowwise`.
    """

    def __init__(self, recipe: str) -> None:
        self._recipe = recipe
        self._kinds: list[str] = []

    def on_root(self, module: Any) -> None:
        """Exchange the layers of one root."""
        from torchao.float8 import Float8LinearConfig, convert_to_float8_training

        convert_to_float8_training(
            module,
            module_filter_fn=takes,
            config=Float8LinearConfig.from_recipe_name(self._recipe),
        )
        self._kinds += [type(layer).__name__ for layer in module.modules()]

    def effect(self) -> tuple[bool, str]:
        """Return how many layers were exchanged."""
        return say(self._kinds, "Float8Linear", f"float8 with {self._recipe} scales")
