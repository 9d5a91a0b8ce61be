"""Where the perturbed run, which the parity floor is made of, goes on as another run would."""

from __future__ import annotations

import contextlib
import functools
import inspect
from typing import Any

from hotloop.probe.probe import Probe
from hotloop.probe.record.perturbation import Perturbation, seed_all

ALIKE_BATCHES = 2
"""That loader workers make before they draw otherwise: the second step has noise, and the original's batch."""


def install_perturbation(probe: Probe, perturbation: Perturbation) -> None:
    """Put relative noise on every parameter at the first step of the first optimizer, and reseed at the next forward.

    A program that takes its steps without an optimizer, or trains nothing, is perturbed where a model is called
    (`root`): the one before its second training step, the other at first.

    What follows is the program as it was, but for rounding and for its own random choices: how far its losses move is
    the floor of the parity check.
    """
    from torch.optim.optimizer import register_optimizer_step_post_hook

    def stepped(optimizer: Any, args: Any, kwargs: Any) -> None:  # noqa: ARG001 - the hook's signature
        with probe.survive("perturb"):
            perturbation.stepped(optimizer)

    register_optimizer_step_post_hook(stepped)
    with probe.survive("perturb workers"):
        _reseed_workers(probe.config.perturb_number)


def _reseed_workers(number: int) -> None:
    """Loader workers draw from seeds of their own, which they are started with.

    Those that make the first two batches draw from other seeds after them, unless the program sees to its seeds or to
    its samples by itself: then at once, as all others do.
    """
    from torch.utils.data import _DatasetKind
    from torch.utils.data._utils import worker

    original = worker._worker_loop
    names = list(inspect.signature(original).parameters)
    base_at = names.index("base_seed")

    @functools.wraps(original)
    def loop(*args: Any) -> Any:
        given = dict(zip(names, args, strict=False))
        seed, own = given["base_seed"] + number, given["worker_id"]
        num_alike = len(range(own, ALIKE_BATCHES, given["num_workers"]))
        plain = given["init_fn"] is None and given["dataset_kind"] == _DatasetKind.Map
        if plain and num_alike:
            _reseed_after(num_alike, seed + own)
            return original(*args)
        return original(*args[:base_at], seed, *args[base_at + 1 :])

    worker._worker_loop = loop


def _reseed_after(num_batches: int, seed: int) -> None:
    """In a worker: draw from another seed once so many batches were made."""
    from torch.utils.data import _DatasetKind, get_worker_info

    create, num = _DatasetKind.create_fetcher, 0

    @functools.wraps(create)
    def create_fetcher(*args: Any) -> Any:
        fetcher = create(*args)
        fetch = fetcher.fetch

        def fetch_and_reseed(index: Any) -> Any:
            nonlocal num
            batch = fetch(index)
            num += 1
            if num == num_batches:
                seed_all(seed)
                with contextlib.suppress(AttributeError):  # outside of a worker
                    object.__setattr__(get_worker_info(), "seed", seed)  # it lets nobody set it
            return batch

        fetcher.fetch = fetch_and_reseed
        return fetcher

    _DatasetKind.create_fetcher = create_fetcher
