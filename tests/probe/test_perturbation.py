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
from hotloop.probe.setup.seeds import _reseed_workers, install_perturbation


@pytest.mark.parametrize(
    ("num_workers", "worker_id", "num_alike"),
    [(1, 0, 2), (2, 1, 1)],
    ids=["one makes the first two", "each makes one"],
)
def test_workers_draw_otherwise_after_the_first_two_batches(
    monkeypatch: pytest.MonkeyPatch, num_workers: int, worker_id: int, num_alike: int
) -> None:
    from torch.utils.data import _DatasetKind
    from torch.utils.data._utils import worker

    def drawn() -> list[float]:
        torch.manual_seed(7)
        fetcher = _DatasetKind.create_fetcher(_DatasetKind.Map, _Drawing(), True, list, False)
        return [fetcher.fetch([0])[0] for _ in range(4)]

    usual = drawn()
    monkeypatch.setattr(_DatasetKind, "create_fetcher", staticmethod(_DatasetKind.create_fetcher))
    monkeypatch.setattr(worker, "_worker_loop", _loop_of(lambda base_seed: [base_seed, *drawn()]))
    _reseed_workers(3)
    seed, *other = _start_worker(
        base_seed=40, worker_id=worker_id, num_workers=num_workers, dataset_kind=_DatasetKind.Map
    )
    assert seed == 40
    assert other[:num_alike] == usual[:num_alike]
    torch.manual_seed(43 + worker_id)
    assert other[num_alike:] == [float(torch.rand(())) for _ in range(4 - num_alike)]


@pytest.mark.parametrize(
    "told",
    [{"worker_id": 3}, {"dataset_kind": 1}, {"init_fn": print}],
    ids=["it makes none of them", "the data set iterates", "the program seeds it"],
)
def test_other_workers_are_given_other_seeds_at_once(
    monkeypatch: pytest.MonkeyPatch, told: dict[str, Any]
) -> None:
    from torch.utils.data import _DatasetKind
    from torch.utils.data._utils import worker

    monkeypatch.setattr(worker, "_worker_loop", _loop_of(lambda base_seed: [base_seed]))
    _reseed_workers(3)
    usual = {"base_seed": 40, "worker_id": 0, "num_workers": 8, "dataset_kind": _DatasetKind.Map}
    assert _start_worker(**{**usual, **told}) == [43]


class _Crops(torch.utils.data.Dataset[torch.Tensor]):
    """A data set with random augmentation, which says what its worker's seed is."""

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> torch.Tensor:
        info = torch.utils.data.get_worker_info()
        assert info is not None
        return torch.stack(
            [torch.tensor(float(index)), torch.rand(()), torch.tensor(float(info.seed % 1000))]
        )


def _epoch(num_workers: int) -> list[torch.Tensor]:
    torch.manual_seed(5)
    return list(torch.utils.data.DataLoader(_Crops(), batch_size=2, shuffle=True, num_workers=num_workers))


@pytest.mark.parametrize("num_workers", [1, 2])
def test_the_first_two_batches_of_real_workers_are_the_original_s(
    monkeypatch: pytest.MonkeyPatch, num_workers: int
) -> None:
    from torch.utils.data._utils import worker

    usual = _epoch(num_workers)
    monkeypatch.setattr(worker, "_worker_loop", worker._worker_loop)
    _reseed_workers(3)
    other = _epoch(num_workers)
    same = [bool((one == again).all()) for one, again in zip(usual, other, strict=True)]
    assert same == [True, True, *[False] * 6]
    assert all(bool((one[:, 0] == again[:, 0]).all()) for one, again in zip(usual, other, strict=True))
    later = zip(usual[2:], other[2:], strict=True)
    assert all(bool(((again[:, 2] - one[:, 2]) % 1000 == 3).all()) for one, again in later)


def _start_worker(**told: Any) -> list[float]:
    from torch.utils.data._utils import worker

    names = list(inspect.signature(worker._worker_loop).parameters)
    found: list[float] = worker._worker_loop(*(told.get(name) for name in names))
    return found


def _loop_of(body: Callable[[int], list[float]]) -> Callable[..., list[float]]:
    from torch.utils.data._utils import worker

    at = list(inspect.signature(worker._worker_loop).parameters).index("base_seed")

    def loop(*args: Any) -> list[float]:
        return body(args[at])

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


def test_two_optimizers_that_step_after_one_backward_are_one_step() -> None:
    weights = [torch.nn.Parameter(torch.ones(10)) for _ in range(2)]
    first, second = (torch.optim.SGD([weight], lr=0.0) for weight in weights)
    perturbation = Perturbation(_Probe.config)
    torch.manual_seed(1)
    perturbation.stepped(first)
    perturbation.stepped(second)
    batch = float(torch.rand(()))
    perturbation.before_forward()
    mask = float(torch.rand(()))
    torch.manual_seed(1)
    assert batch == float(torch.rand(()))
    assert mask != float(torch.rand(()))


def test_each_model_of_a_program_without_an_optimizer_gets_noise() -> None:
    perturbation = Perturbation(_Probe.config)
    weights = [torch.nn.Parameter(torch.ones(100)) for _ in range(2)]
    for weight in weights:
        perturbation.put_noise([weight])
        perturbation.before_forward()
    assert all(bool((weight != 1).any()) for weight in weights)
