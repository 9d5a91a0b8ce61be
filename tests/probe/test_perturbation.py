"""The perturbed run has noise from its second step on, and then draws other random numbers."""

from __future__ import annotations

import contextlib
import inspect
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, cast

import pytest
import torch

from hotloop.probe.probe import Probe
from hotloop.probe.process.config import ProbeConfig
from hotloop.probe.record.perturbation import Perturbation
from hotloop.probe.setup.seeds import install_perturbation


def test_workers_that_the_program_seeds_are_given_other_seeds_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from torch.utils.data._utils import worker

    from hotloop.probe.setup.seeds import _reseed_workers

    names = list(inspect.signature(worker._worker_loop).parameters)
    seen: list[tuple[Any, ...]] = []

    def loop(*args: Any) -> None:
        seen.append(args)

    loop.__signature__ = inspect.signature(worker._worker_loop)  # type: ignore[attr-defined]
    monkeypatch.setattr(worker, "_worker_loop", loop)
    _reseed_workers(3)
    worker._worker_loop(*range(len(names)))
    given = dict(zip(names, seen[0], strict=True))
    assert given.pop("base_seed") == names.index("base_seed") + 3
    assert given == {name: at for at, name in enumerate(names) if name != "base_seed"}


def test_workers_draw_otherwise_after_two_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.utils.data import _DatasetKind
    from torch.utils.data._utils import worker

    from hotloop.probe.setup.seeds import _reseed_workers

    def drawn(index: list[int]) -> list[float]:
        torch.manual_seed(7)
        fetcher = _DatasetKind.create_fetcher(_DatasetKind.Map, _Drawing(), True, list, False)
        return [fetcher.fetch(index)[0] for _ in range(4)]

    usual = drawn([0])
    monkeypatch.setattr(_DatasetKind, "create_fetcher", staticmethod(_DatasetKind.create_fetcher))
    monkeypatch.setattr(worker, "_worker_loop", _loop_of(lambda: drawn([0])))
    _reseed_workers(3)
    names = list(inspect.signature(worker._worker_loop).parameters)
    other = worker._worker_loop(*({"base_seed": 40, "worker_id": 1}.get(name) for name in names))
    assert other[:2] == usual[:2]
    torch.manual_seed(44)
    assert other[2:] == [float(torch.rand(())) for _ in range(2)]


def _loop_of(body: Callable[[], list[float]]) -> Callable[..., list[float]]:
    from torch.utils.data._utils import worker

    def loop(*args: Any) -> list[float]:
        return body()

    loop.__signature__ = inspect.signature(worker._worker_loop)  # type: ignore[attr-defined]
    return loop


class _Drawing:
    """A data set with random augmentation."""

    def __getitem__(self, index: int) -> float:
        return float(torch.rand(()))


class _Probe:
    """As much of one as perturbation needs."""

    config = ProbeConfig(folder="", perturb=2**-9, perturb_number=1)

    def survive(self, what: str) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


@pytest.mark.parametrize("with_forward", [True, False])
def test_noise_comes_after_the_first_step_and_other_draws_with_the_next_forward(
    monkeypatch: pytest.MonkeyPatch, with_forward: bool
) -> None:
    """The batch of that forward was drawn by then. Where no forward is seen, they come with the second step."""
    from torch.optim import optimizer as module
    from torch.utils.data._utils import worker

    monkeypatch.setattr(worker, "_worker_loop", worker._worker_loop)
    monkeypatch.setattr(module, "_global_optimizer_post_hooks", OrderedDict())
    perturbation = Perturbation(_Probe.config)
    install_perturbation(cast(Probe, _Probe()), perturbation)
    weight = torch.nn.Parameter(torch.ones(100))
    optimizer = torch.optim.SGD([weight], lr=0.0)
    weight.grad = torch.zeros(100)
    torch.manual_seed(1)
    batches, masks = [], []
    for _ in range(3):
        batches.append(float(torch.rand(())))
        if with_forward:
            perturbation.before_forward()
        masks.append(float(torch.rand(())))
        optimizer.step()
    torch.manual_seed(1)
    usual = [float(torch.rand(())) for _ in range(6)]
    assert batches[:2] == usual[:3:2]
    assert masks[0] == usual[1]
    assert (masks[1] == usual[3]) != with_forward
    assert batches[2] != usual[4]
    noise = (weight - 1).detach()
    assert 0 < float(noise.std()) < 2 * 2**-9
