"""One call of torch's for all time steps of a cell, with the cell's own weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Weights = Sequence[Any]
"""Of the input and of the state, then the two biases, in torch's order of gates; without biases two."""


@dataclass(frozen=True)
class Fused:
    """What takes a cell's place.

    Attributes:
        kind: `lstm`, `gru`, `rnn_tanh` or `rnn_relu`.
        weights: returns those of a cell as they are now, so that gradients reach its own parameters.
    """

    kind: str
    weights: Callable[[Any], Weights]

    def run(self, cell: Any, steps: Any, states: Sequence[Any]) -> tuple[Any, list[Any]]:
        """Return the outputs of all steps, and the last states.

        Args:
            cell: whose weights are taken.
            steps: time, batch, features.
            states: of the first step, batch by width; of an LSTM two.
        """
        import torch

        weights = list(self.weights(cell))
        if steps.device.type != "cpu" or not torch.is_autocast_enabled("cpu"):
            return self._run(weights, steps, states)
        with torch.autocast(
            "cpu", enabled=False
        ):  # cells keep their states in fp32 there, and oneDNN wants one type
            dtype = weights[0].dtype
            return self._run(weights, steps.to(dtype), [each.to(dtype) for each in states])

    def _run(self, weights: Weights, steps: Any, states: Sequence[Any]) -> tuple[Any, list[Any]]:
        import torch

        given = [each.unsqueeze(0).contiguous() for each in states]
        rest = (laid_out(weights, steps.device), len(weights) == 4, 1, 0.0, True, False, False)
        if self.kind == "lstm":
            outputs, *last = torch.lstm(steps, given, *rest)
        else:
            outputs, *last = getattr(torch, self.kind)(steps, given[0], *rest)
        return outputs, [each.squeeze(0) for each in last]


def laid_out(weights: Weights, device: Any) -> list[Any]:
    """Return weights as the call wants them; cuDNN copies, and warns, where they do not lie behind one another."""
    import torch

    if device.type != "cuda":
        return list(weights)
    together = torch.cat([each.reshape(-1) for each in weights])
    parts = together.split([each.numel() for each in weights])
    return [part.view(each.shape) for part, each in zip(parts, weights, strict=True)]
