"""Make two runs of a program comparable: the same seed, and a measured perturbation for the parity floor."""

from __future__ import annotations

import functools
import inspect
import random
import sys
from collections.abc import Iterator
from typing import Any

from hotloop.probe.probe import Probe
from hotloop.probe.record.perturbation import perturb


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


def install_perturbation(probe: Probe) -> None:
    """Put relative noise on every parameter at the first step of the first optimizer, and reseed.

    A program that trains nothing has its noise put on when a model is first called (`root`).

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
            number = probe.config.perturb_number
            perturb(_parameters(optimizer), probe.config.perturb, number)
            seed_all((probe.config.seed or 0) + number)

    register_optimizer_step_post_hook(once)
    with probe.survive("perturb workers"):
        _reseed_workers(probe.config.perturb_number)


def _reseed_workers(number: int) -> None:
    """Loader workers draw from seeds of their own, which they are started with."""
    from torch.utils.data._utils import worker

    original = worker._worker_loop
    at = list(inspect.signature(original).parameters).index("base_seed")

    @functools.wraps(original)
    def loop(*args: Any) -> Any:
        return original(*args[:at], args[at] + number, *args[at + 1 :])

    worker._worker_loop = loop


def _parameters(optimizer: Any) -> Iterator[Any]:
    for group in optimizer.param_groups:
        yield from group["params"]
