"""Models are stacked, mapped over and differentiated by torch.func."""

from __future__ import annotations

import copy
from typing import Any

import torch
from program import trained


def case() -> Any:
    from torch.func import functional_call, grad, stack_module_state, vmap

    torch.manual_seed(0)
    models = [trained() for _ in range(2)]
    parameters, buffers = stack_module_state(models)  # type: ignore[arg-type]
    base = copy.deepcopy(models[0]).to("meta")

    def call(parameters: Any, buffers: Any, inputs: torch.Tensor) -> torch.Tensor:
        return functional_call(base, (parameters, buffers), (inputs,))

    outputs = vmap(call, in_dims=(0, 0, None))(parameters, buffers, torch.ones(3, 8))
    own = dict(models[0].named_parameters())
    gradient = grad(lambda p: functional_call(models[0], p, (torch.ones(1, 8),)).sum())(own)
    return [outputs.sum().item().hex(), float(gradient["second.bias"].sum())]
