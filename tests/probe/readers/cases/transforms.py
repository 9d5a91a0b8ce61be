"""torch.func: gradients and vmap."""

from __future__ import annotations

from typing import Any

import torch
from program import Found, first
from torch import nn


def read(model: nn.Module, inputs: Any) -> Found:
    parameters = {name: value.detach() for name, value in model.named_parameters()}

    def objective(values: Any) -> torch.Tensor:
        out = torch.func.functional_call(model, values, (inputs,))
        return first(out).square().mean()

    gradients, value = torch.func.grad_and_value(objective)(parameters)
    stacked = {name: torch.stack([each, each]) for name, each in parameters.items()}
    many = torch.func.vmap(objective, randomness="different")(stacked)
    kept = [parameter.grad_fn is None and parameter.is_leaf for parameter in model.parameters()]
    shapes = [sorted((name, list(each.shape)) for name, each in gradients.items()), list(many.shape), kept]
    return [shapes, str(value.dtype), str(many.dtype)], value.item().hex()
