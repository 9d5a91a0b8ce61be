"""cuda_graphs: what it sets on a stand-in for torch's capture, when it steps aside, and on a GPU that it is exact."""

from __future__ import annotations

import copy
import functools
import io
from typing import Any

import msgspec
import pytest
import torch
from torch import Tensor, nn

from hotloop.model.observation import Observation
from hotloop.optimize.catalogue.compute.cuda_graphs.row import CudaGraphs
from hotloop.optimize.optimization import DoesNotApply

from .harness import activate, observation, root


class Capture:
    """Stands for `torch.cuda.make_graphed_callables`: runs the model as a capture does, and counts replays."""

    def __init__(self) -> None:
        self.num_captured = 0
        self.num_replayed = 0

    def __call__(
        self, module: nn.Module, samples: Any, num_warmup_iters: int, *, allow_unused_input: bool
    ) -> nn.Module:
        original = module.forward
        for _ in range(num_warmup_iters + 1):
            original(*samples)
        self.num_captured += 1

        def forward(*args: Tensor) -> Any:
            self.num_replayed += 1
            return original(*args)

        module.forward = forward
        return module


@pytest.fixture
def capture(monkeypatch: pytest.MonkeyPatch) -> Capture:
    found = Capture()
    monkeypatch.setattr(torch.cuda, "make_graphed_callables", found)
    return found


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))


def train(net: nn.Module, num: int = 4, device: str = "cpu") -> list[float]:
    """Return the losses of so many steps; the batches are always the same."""
    optimizer, draw = torch.optim.SGD(net.parameters(), lr=0.1), torch.Generator().manual_seed(4)
    losses = []
    for _ in range(num):
        optimizer.zero_grad()
        loss = net(torch.randn(5, 6, generator=draw).to(device)).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_forwards_are_replayed_and_the_training_is_the_same(capture: Capture) -> None:
    net = model()
    expected = train(copy.deepcopy(net))
    activation = CudaGraphs().activation({})
    activate(activation, net)
    assert train(net) == pytest.approx(expected), "the warm-up leaves no trace in the norm's statistics"
    assert (capture.num_captured, capture.num_replayed) == (1, 4)
    assert activation.effect() == (True, "4 forwards replayed as CUDA graphs")
    assert "forward" not in vars(net)
    torch.save(net.state_dict(), io.BytesIO())


def test_other_shapes_modes_and_open_backwards_run_as_they_did(capture: Capture) -> None:
    net = model()
    activation = CudaGraphs().activation({})
    activate(activation, net)
    train(net, 1)
    net(torch.randn(7, 6)).sum().backward()
    net.eval()(torch.randn(5, 6)).sum().backward()
    net.train()
    first, second = net(torch.randn(5, 6)), net(torch.randn(5, 6))
    (first.sum() + second.sum()).backward()
    assert capture.num_replayed == 2
    assert activation.effect() == (True, "2 forwards replayed as CUDA graphs, 3 calls as they were")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda net: net[0].register_forward_hook(lambda *_: None), "hooks"),
        (lambda net: net.register_buffer("learned", torch.zeros(1, requires_grad=True)), "buffer"),
    ],
)
def test_what_cannot_be_captured_is_left(capture: Capture, change: Any, why: str) -> None:
    net = model()
    change(net)
    activation = CudaGraphs().activation({})
    activate(activation, net)
    assert len(train(net, 2)) == 2
    on, evidence = activation.effect()
    assert not on
    assert why in evidence
    assert not capture.num_captured


def test_a_capture_that_fails_leaves_the_program_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(module: nn.Sequential, *_: Any, **__: Any) -> None:
        module[1].running_mean.add_(1)
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    monkeypatch.setattr(torch.cuda, "make_graphed_callables", fails)
    net = model()
    expected = train(copy.deepcopy(net))
    statistics = copy.deepcopy(net[1].running_mean)
    activation = CudaGraphs().activation({})
    activate(activation, net)
    net(torch.zeros(5, 6))
    assert torch.allclose(net[1].running_mean, 0.9 * statistics + 0.1 * net[0].bias), (
        "not moved by the capture"
    )
    net = model()
    activate(activation, net)
    assert train(net) == expected
    on, evidence = activation.effect()
    assert not on
    assert evidence.endswith("RuntimeError: operation not permitted when stream is capturing")


def on_a_gpu(**changes: Any) -> Observation:
    return observation(device="cuda", roots=(root(**changes),))


def with_rhythm(*rhythm: str) -> Observation:
    seen = on_a_gpu()
    assert seen.step is not None
    return msgspec.structs.replace(seen, step=msgspec.structs.replace(seen.step, rhythm=rhythm))


def test_it_is_tried_on_a_gpu() -> None:
    (candidate,) = CudaGraphs().candidates(with_rhythm("data", "forward", "backward", "optimizer"))
    assert candidate.params == {}


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (observation(), "on cpu"),
        (on_a_gpu(shapes_vary=True), "fixed input shapes"),
        (on_a_gpu(compiled=True), "compiles its model"),
        (observation(device="cuda", distributed="ddp"), "distributed"),
        (observation(device="cuda", double_backward=True), "twice"),
        (observation(device="cuda", roots=()), "no module"),
        (with_rhythm("3x(data forward backward)", "optimizer"), "several backward"),
        (with_rhythm("forward backward", "forward", "backward", "optimizer"), "several backward"),
    ],
)
def test_it_is_refused_with_a_reason(seen: Observation, why: str) -> None:
    with pytest.raises(DoesNotApply, match=why):
        CudaGraphs().candidates(seen)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_on_a_device_the_training_is_the_same() -> None:
    net = model().cuda()
    expected = train(copy.deepcopy(net), 8, "cuda")
    activation = CudaGraphs().activation({})
    activate(activation, net)
    assert train(net, 8, "cuda") == pytest.approx(expected, rel=1e-5)
    assert activation.effect()[0]


def test_a_forward_of_the_instance_s_own_stays(capture: Capture) -> None:
    """Accelerate's mixed precision puts one there."""
    net = model()
    own = functools.partial(nn.Sequential.forward, net)
    net.forward = own
    activate(CudaGraphs().activation({}), net)
    train(net, 2)
    assert vars(net)["forward"] is own
    assert capture.num_replayed == 2


def test_gradients_leave_the_graph_s_memory(capture: Capture) -> None:
    """A replay writes its gradients where those before were: added to themselves they would be twice as large."""
    net = model()
    activate(CudaGraphs().activation({}), net)
    net(torch.ones(5, 6)).sum().backward()
    before = [each.grad for each in net.parameters()]
    values = [each.clone() for each in before if each is not None]
    output = net(torch.ones(5, 6)).sum()
    for each in before:
        assert each is not None
    output.backward()
    assert all(new.grad is not old for new, old in zip(net.parameters(), before, strict=True))
    assert all(torch.equal(old, value) for old, value in zip(before, values, strict=True))
