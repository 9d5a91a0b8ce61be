"""What the perturbed run is put through: how far it moves a program is the floor of the parity check."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable
from typing import Any

from hotloop.probe.process.config import ProbeConfig


def seed_all(seed: int) -> None:
    """Seed Python, torch and, if it is imported, NumPy; a program that seeds for itself does so later and wins."""
    import torch

    _unpatched(random.seed)(seed)
    _unpatched(torch.manual_seed)(seed)
    if "numpy" in sys.modules:
        _unpatched(sys.modules["numpy"].random.seed)(seed % 2**32)


def _unpatched(function: Any) -> Any:
    """Past `program_seeds`: this is no seed of the program's."""
    return getattr(function, "__wrapped__", function)


def perturb_and_reseed(parameters: Iterable[Any], config: ProbeConfig) -> None:
    """Go on from here as another run would: with rounding noise, and random choices of its own."""
    perturb(parameters, config.perturb, config.perturb_number)
    seed_all((config.seed or 0) + config.perturb_number)


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
