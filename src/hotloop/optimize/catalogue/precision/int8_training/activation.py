"""The activation of int8_training: the products of linear layers in 8-bit integers, by torchao."""

from __future__ import annotations

from typing import Any

from hotloop.optimize.reduced_precision.eight_bit_layers import say, takes
from hotloop.probe.activation.activation import Activation


class Int8Layers(Activation):
    """Exchanges the class of linear layers before the first training forward; they and their parameters stay."""

    def __init__(self) -> None:
        self._kinds: list[str] = []

    def on_root(self, module: Any) -> None:
        """Exchange the layers of one root."""
        from torchao.prototype.quantized_training import Int8MixedPrecisionTrainingConfig
        from torchao.quantization import quantize_

        quantize_(module, Int8MixedPrecisionTrainingConfig(module_swap=True), filter_fn=takes)
        self._kinds += [type(layer).__name__ for layer in module.modules()]

    def effect(self) -> tuple[bool, str]:
        """Return how many layers were exchanged."""
        return say(self._kinds, "Int8MixedPrecisionTrainingLinear", "int8")
