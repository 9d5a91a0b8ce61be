"""Rounding noise on parameters: how far it moves a program is the floor of the parity check."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def perturb(parameters: Iterable[Any], relative: float, number: int) -> None:
    """Put relative noise on parameters.

    Args:
        parameters: each once.
        relative: its standard deviation.
        number: which draw of it.
    """
    import torch

    generator = torch.Generator().manual_seed(number)
    with torch.no_grad():
        for parameter in parameters:
            if parameter.is_floating_point() and not parameter.is_sparse:
                noise = torch.randn(parameter.shape, generator=generator).to(parameter)
                parameter.mul_(1 + relative * noise)
