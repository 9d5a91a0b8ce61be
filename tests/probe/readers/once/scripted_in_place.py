"""TorchScript finds names by counting the frames above it."""

from __future__ import annotations

import torch
from program import Found


def read() -> Found:
    import torch.distributed.optim  # it scripts classes when it is imported

    def local_helper(value: torch.Tensor) -> torch.Tensor:
        return value * 3

    @torch.jit.script
    def uses_it(value: torch.Tensor) -> torch.Tensor:
        return local_helper(value)

    @torch.jit.script
    def differentiates(value: torch.Tensor) -> list[torch.Tensor | None]:
        return torch.autograd.grad([value.sum()], [value])

    @torch.library.custom_op("program::thrice", mutates_args=())
    def thrice(value: torch.Tensor) -> torch.Tensor:
        return local_helper(value)

    value = torch.ones(2, requires_grad=True)
    return [
        uses_it(value).tolist(),
        str(differentiates(value)),
        thrice(value.detach()).tolist(),
    ], uses_it.code
