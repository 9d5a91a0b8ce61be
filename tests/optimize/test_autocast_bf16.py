"""autocast_bf16: the forward in bfloat16, everything outside it as before."""

from __future__ import annotations

import collections
import copy
import dataclasses
import inspect
import io
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn

from hotloop.optimize.catalogue.precision.autocast_bf16 import AutocastBf16
from hotloop.optimize.optimization import DoesNotApply
from hotloop.optimize.program.containers import tensors_in

from .harness import activate, observation, root


class Returns(nn.Module):  # type: ignore[misc]
    """Returns what the test asks for, computed by a linear layer."""

    def __init__(self, build: Any) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 4)
        self.build = build

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> Any:
        return self.build(self.layer(x) * scale)


class Named(NamedTuple):
    logits: torch.Tensor
    hidden: tuple[torch.Tensor, ...]


@dataclasses.dataclass(frozen=True)
class Frozen:
    logits: torch.Tensor
    name: str


def _model_output(y: torch.Tensor) -> Any:
    from transformers.modeling_outputs import CausalLMOutput

    return CausalLMOutput(logits=y, hidden_states=(y, y))


CONTAINERS = [
    lambda y: y,
    lambda y: (y, [y, {"a": y}]),
    lambda y: Named(y, (y,)),
    lambda y: Frozen(y, "kept"),
    lambda y: collections.OrderedDict(a=y, b=None),
    lambda y: torch.max(y, dim=1),
    _model_output,
]


@pytest.mark.parametrize("build", CONTAINERS)
def test_outputs_come_back_as_fp32_in_the_containers_they_had(build: Any) -> None:
    model = Returns(build)
    x = torch.randn(2, 8)
    plain = model(x)
    activation = AutocastBf16().activation({})
    activate(activation, model)
    output = model(x)
    floating = [tensor for tensor in tensors_in(output) if tensor.is_floating_point()]
    assert type(output) is type(plain)
    assert floating
    assert all(tensor.dtype is torch.float32 for tensor in floating)
    sum(tensor.sum() for tensor in floating).backward()
    assert model.layer.weight.grad is not None
    on, evidence = activation.effect()
    assert on
    assert "torch.bfloat16" in evidence


def test_transformers_outputs_keep_attributes_and_keys() -> None:
    model = Returns(_model_output)
    activate(AutocastBf16().activation({}), model)
    output = model(torch.randn(2, 8))
    assert output.logits.dtype is torch.float32
    assert output["logits"] is output.logits
    assert output.hidden_states[0].dtype is torch.float32


def test_a_loss_that_refuses_half_works_on_the_output() -> None:
    model = Returns(torch.sigmoid)
    activate(AutocastBf16().activation({}), model)
    loss = nn.functional.binary_cross_entropy(model(torch.randn(2, 8)), torch.rand(2, 4))
    loss.backward()
    assert model.layer.weight.grad is not None
    assert model.layer.weight.grad.dtype is torch.float32


def test_a_loss_computed_inside_the_model_is_proof_enough() -> None:
    model = Returns(lambda y: nn.functional.mse_loss(y.float(), torch.zeros(2, 4)))
    activation = AutocastBf16().activation({})
    activate(activation, model)
    assert model(torch.randn(2, 8)).dtype is torch.float32
    on, evidence = activation.effect()
    assert on
    assert "casts of autocast" in evidence


def test_double_precision_is_left_alone() -> None:
    model = Returns(lambda y: y).double()
    activation = AutocastBf16().activation({})
    activate(activation, model)
    assert model(torch.randn(2, 8, dtype=torch.float64)).dtype is torch.float64
    on, evidence = activation.effect()
    assert not on
    assert "double precision" in evidence


def test_a_model_in_which_nothing_is_reduced_shows_no_effect() -> None:
    class Pointwise(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.scale

    model = Pointwise()
    activation = AutocastBf16().activation({})
    activate(activation, model)
    model(torch.randn(2, 4)).sum().backward()
    assert not activation.effect()[0]


def test_nothing_was_seen_before_the_first_forward() -> None:
    assert AutocastBf16().activation({}).effect() == (False, "no training forward was seen")


def test_gradient_penalty_works_under_it() -> None:
    model = Returns(lambda y: y.square().sum())
    activate(AutocastBf16().activation({}), model)
    x = torch.randn(2, 8, requires_grad=True)
    (gradient,) = torch.autograd.grad(model(x), x, create_graph=True)
    gradient.norm().backward()
    assert model.layer.weight.grad is not None


def test_autocast_is_off_after_a_forward_that_raises() -> None:
    def fail(y: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("of the program")

    model = Returns(fail)
    activate(AutocastBf16().activation({}), model)
    with pytest.raises(RuntimeError, match="of the program"):
        model(torch.randn(2, 8))
    assert not torch.is_autocast_enabled("cpu")


def test_a_disabled_scaler_on_the_cpu_goes_on_working() -> None:
    model = Returns(lambda y: y.sum())
    activate(AutocastBf16().activation({}), model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cuda", enabled=False)
    before = model.layer.weight.detach().clone()
    scaler.scale(model(torch.randn(2, 8))).backward()
    scaler.step(optimizer)
    scaler.update()
    assert not torch.equal(before, model.layer.weight)


class Plain(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> Any:
        return self.layer(x) * scale


def test_the_module_is_saved_copied_and_inspected_as_before() -> None:
    model = Plain()
    keys, children = list(model.state_dict()), list(model.children())
    signature = inspect.signature(model.forward)
    activate(AutocastBf16().activation({}), model)
    model(torch.randn(2, 8)).sum().backward()
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    assert (
        list(loaded.state_dict())
        == list(copy.deepcopy(model).state_dict())
        == list(model.state_dict())
        == keys
    )
    assert list(model.children()) == children
    assert inspect.signature(model.forward) == signature
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    model.load_state_dict(torch.load(file, weights_only=True))


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ({"autocast_dtype": "float16"}, "already runs under autocast to float16"),
        ({"roots": (root(dtypes=("float32", "float64")),)}, "float64"),
        ({"roots": (root(dtypes=("bfloat16",)),)}, "already"),
    ],
)
def test_it_does_not_apply(program: dict[str, Any], reason: str) -> None:
    with pytest.raises(DoesNotApply, match=reason):
        AutocastBf16().candidates(observation(**program))


def test_the_candidate_is_checked_for_parity() -> None:
    (candidate,) = AutocastBf16().candidates(observation())
    assert candidate.label == "autocast_bf16"
    assert candidate.numerics == "tolerance"
    assert 1.0 < candidate.prior < 1.5


def test_parameters_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown parameter 'dtype'"):
        AutocastBf16().validate({"dtype": "bf16"})
