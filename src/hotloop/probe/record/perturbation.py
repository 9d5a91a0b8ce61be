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


class Perturbation:
    """Perturbs a run: rounding noise after its first step, then other random choices.

    The forward between them is given the batch that the original's is given (of several that are accumulated, the
    first): what noise, and other masks of dropout, make of its gradients is seen.

    Args:
        config: how much noise, and which draw of it.
    """

    def __init__(self, config: ProbeConfig) -> None:
        self._config = config
        self._first: int | None = None
        self._is_noisy = False
        self._draws_otherwise = False

    def stepped(self, optimizer: Any) -> None:
        """Put noise on the parameters of the first optimizer; draw otherwise when it steps again, if no forward was."""
        if self._first is None:
            self._first = id(optimizer)
            self.put_noise(value for group in optimizer.param_groups for value in group["params"])
        elif self._first == id(optimizer):
            self.before_forward()

    def put_noise(self, parameters: Iterable[Any]) -> None:
        """Put noise on parameters."""
        self._is_noisy = True
        perturb(parameters, self._config.perturb, self._config.perturb_number)

    def before_forward(self) -> None:
        """Draw from here on what another run would, once there is noise."""
        if self._is_noisy and not self._draws_otherwise:
            self._draws_otherwise = True
            seed_all((self._config.seed or 0) + self._config.perturb_number)


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
