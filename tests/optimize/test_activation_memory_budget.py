"""activation_memory_budget: compiled code keeps fewer activations, and learns the same."""

from __future__ import annotations

import threading

import pytest
import torch
import torch._functorch.config as settings
from torch import nn

from hotloop.optimize.catalogue.memory.activation_memory_budget.row import BUDGETS, ActivationMemoryBudget
from hotloop.optimize.optimization import DoesNotApply

from .harness import activate, observation, root


@pytest.fixture(autouse=True)
def budget_as_before() -> None:
    with settings.patch(activation_memory_budget=1.0):
        yield


class Tower(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*[nn.Sequential(nn.Linear(64, 64), nn.GELU()) for _ in range(6)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def kept_bytes(budget: float | None) -> tuple[int, torch.Tensor]:
    """What autograd keeps of one forward beside parameters and input, and a gradient."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model, x = Tower(), torch.randn(256, 64)
    known = {each.untyped_storage().data_ptr() for each in (x, *model.parameters())}
    sizes: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    if budget is not None:
        activation = ActivationMemoryBudget().activation({"budget": budget, "compile": True})
        activate(activation, model)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        output = model(x)
    output.square().sum().backward()
    if budget is not None:
        is_on, said = activation.effect()
        assert is_on, said
        assert said.endswith(f"activation_memory_budget={budget}")
    return sum(sizes.values()), model.layers[0][0].weight.grad


@pytest.mark.slow
def test_less_is_kept_and_gradients_are_the_same() -> None:
    plain, gradient = kept_bytes(None)
    least, same = kept_bytes(0.1)
    assert least < 0.5 * plain
    torch.testing.assert_close(same, gradient, rtol=1e-4, atol=1e-4)


def test_the_budget_is_set_in_the_thread_that_trains() -> None:
    seen = []
    activation = ActivationMemoryBudget().activation({"budget": 0.3})

    def train() -> None:
        activation.on_root(nn.Linear(1, 1))
        seen.append(settings.activation_memory_budget)

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert seen == [0.3]
    assert activation.effect() == (False, "nothing was compiled in training")


def test_every_budget_is_offered_and_the_programs_own_compilation_is_kept() -> None:
    own = ActivationMemoryBudget().candidates(observation(roots=(root(compiled=True),)))
    assert [one.params for one in own] == [{"budget": budget} for budget in BUDGETS]
    ours = ActivationMemoryBudget().candidates(observation())
    assert all(one.params["compile"] for one in ours)
    assert all(one.saves_memory for one in ours)


def test_a_program_that_trains_nothing_keeps_nothing() -> None:
    with pytest.raises(DoesNotApply, match="no activations are kept"):
        ActivationMemoryBudget().candidates(observation(roots=(root(grad_mode="no_grad"),)))
