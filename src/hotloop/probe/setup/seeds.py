"""Where the perturbed run, which the parity floor is made of, goes on as another run would."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from typing import Any

from hotloop.probe.probe import Probe
from hotloop.probe.record.perturbation import perturb_and_reseed


def install_perturbation(probe: Probe) -> None:
    """Put relative noise on every parameter at the first step of the first optimizer, and reseed.

    A program that takes its steps without an optimizer, or trains nothing, is perturbed where a model is called
    (`root`): the one before its second training step, the other at first.

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
            perturb_and_reseed(_parameters(optimizer), probe.config)

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
