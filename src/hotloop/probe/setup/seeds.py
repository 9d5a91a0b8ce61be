"""Make two runs of a program comparable: the same seed, and a measured perturbation for the parity floor."""

from __future__ import annotations

import random
import sys
from typing import Any

from hotloop.probe.probe import Probe


def seed_all(seed: int) -> None:
    """Seed Python, torch and, if it is imported, NumPy; a program that seeds for itself does so later and wins."""
    import torch

    random.seed(seed)
    torch.manual_seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)


def install_perturbation(probe: Probe) -> None:
    """Put relative noise on every parameter at the first step of the first optimizer, and reseed.

    What follows is the program as it was, but for rounding and for its own random choices: how far its losses move is
    the floor of the parity check.
    """
    from torch.optim.optimizer import register_optimizer_step_post_hook

    done = False

    def once(optimizer: Any, args: Any, kwargs: Any) -> None:  # noqa: ARG001 - the hook's signature
        nonlocal done
        if done:  # a hook cannot take itself out: torch is iterating over the hooks
            return
        done = True
        with probe.survive("perturb"):
            _perturb(optimizer, probe.config.perturb)
            seed_all((probe.config.seed or 0) + 1)

    register_optimizer_step_post_hook(once)


def _perturb(optimizer: Any, relative: float) -> None:
    import torch

    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.is_floating_point() and not parameter.is_sparse:
                    noise = torch.randn(parameter.shape, generator=generator).to(parameter)
                    parameter.mul_(1 + relative * noise)
