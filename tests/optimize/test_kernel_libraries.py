"""What kernel libraries of others are asked to do: torchao (float8_training, int8_training) and a fake of Liger."""

from __future__ import annotations

import importlib.machinery
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from hotloop.model.observation import Observation
from hotloop.optimize.catalogue.compute.liger_kernels.activation import LigerLayers
from hotloop.optimize.catalogue.compute.liger_kernels.row import LigerKernels
from hotloop.optimize.catalogue.precision.float8_training.activation import Float8Layers
from hotloop.optimize.catalogue.precision.float8_training.row import Float8Training
from hotloop.optimize.catalogue.precision.int8_training.activation import Int8Layers
from hotloop.optimize.catalogue.precision.int8_training.row import Int8Training
from hotloop.optimize.optimization import DoesNotApply
from hotloop.optimize.reduced_precision.eight_bit_layers import fits

from .harness import activate, observation, root

HOPPER = {"device": "cuda", "capability": (9, 0), "libraries": ("torchao", "liger_kernel")}
LLAMA = root(cls="LlamaForCausalLM", code_files=("/env/transformers/models/llama/modeling_llama.py",))


def _module(monkeypatch: pytest.MonkeyPatch, name: str, **contents: Any) -> ModuleType:
    module = ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    module.__dict__.update(contents)
    monkeypatch.setitem(sys.modules, name, module)
    return module


EIGHT_BITS = [
    pytest.param(Float8Layers("rowwise"), "Float8Linear", "float8 with rowwise scales", id="float8"),
    pytest.param(Int8Layers(), "Int8MixedPrecisionTrainingLinear", "int8", id="int8"),
]


@pytest.mark.parametrize(("layers", "there", "said"), EIGHT_BITS)
def test_linear_layers_are_exchanged_and_their_parameters_stay(layers: Any, there: str, said: str) -> None:
    hooked, odd = nn.Linear(32, 32), nn.Linear(32, 10)
    hooked.register_forward_hook(lambda *_: None)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), hooked, nn.Sequential(nn.Linear(32, 32)), odd)
    parameters = list(model.parameters())
    activate(layers, model)
    model(torch.randn(16, 16)).sum().backward()
    assert all(parameter.grad is not None for parameter in parameters)
    kinds = [type(layer).__name__ for layer in (model[0], model[2], model[3][0], model[4])]
    assert kinds == [there, "Linear", there, "Linear"]
    assert all(one is other for one, other in zip(parameters, model.parameters(), strict=True))
    assert layers.effect() == (True, f"2 linear layers in {said}, 2 left")


def test_a_model_that_no_layer_of_fits_is_said() -> None:
    layers = Float8Layers("tensorwise")
    model = nn.Linear(16, 16)
    activate(layers, model)
    model(torch.randn(4, 16))
    assert type(model) is nn.Linear
    assert layers.effect() == (False, "none of 1 linear layer can compute in float8 with tensorwise scales")


@pytest.mark.parametrize(("shape", "takes"), [((16, 4096), True), ((16, 10), False), ((20, 32), False)])
def test_the_matrix_units_take_multiples_of_16(shape: tuple[int, int], takes: bool) -> None:
    assert fits(*shape) is takes


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"device": "cpu"}, "the CPU, which has no float8 units"),
        ({"capability": (8, 0)}, "no float8 units (compute capability 8.0)"),
        ({"capability": None}, "compute capability unknown"),
        ({"hip_version": "6.4", "capability": (9, 0)}, "no float8 units"),
        ({"libraries": ()}, "pip install torchao"),
        ({"distributed": "fsdp"}, "sharded by FSDP"),
        ({"roots": (root(layer_counts={"Conv2d": 3}),)}, "no linear layer"),
        ({"roots": (root(layer_counts={"Linear": 1, "Float8Linear": 3}),)}, "in 8 bits already"),
    ],
)
def test_float8_is_refused_with_the_reason(facts: dict[str, Any], why: str) -> None:
    with pytest.raises(DoesNotApply) as refusal:
        Float8Training().candidates(observation(**{**HOPPER, **facts}))
    assert why in str(refusal.value)


@pytest.mark.parametrize("facts", [{}, {"capability": (8, 9)}, {"hip_version": "6.4", "capability": (9, 4)}])
def test_float8_is_tried_where_device_library_and_layers_allow_it(facts: dict[str, Any]) -> None:
    tried = Float8Training().candidates(observation(**{**HOPPER, **facts}))
    assert [each.params["recipe"] for each in tried] == ["tensorwise", "rowwise"]
    assert 1 > tried[0].prior > tried[1].prior
    fused = {**HOPPER, **facts, "roots": (root(layer_counts={"Linear": 8}, compiled=True),)}
    compiled = Float8Training().candidates(observation(**fused))
    assert compiled[0].prior > compiled[1].prior > 1


def test_products_in_int8_are_close_and_have_gradients() -> None:
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 16)), torch.randn(32, 64)
    model(x).pow(2).mean().backward()
    true, gradient = model(x), model[0].weight.grad
    assert gradient is not None
    model.zero_grad()
    activate(Int8Layers(), model)
    model(x).pow(2).mean().backward()
    now = model[0].weight.grad
    assert now is not None
    assert 0 < (model(x) - true).norm() < 0.05 * true.norm()
    assert 0 < (now - gradient).norm() < 0.1 * gradient.norm()


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"device": "cpu"}, "are NVIDIA's"),
        ({"hip_version": "6.4", "capability": (9, 4)}, "are NVIDIA's"),
        ({"capability": (7, 5)}, "too old for torchao's int8 kernels (compute capability 7.5)"),
        ({"capability": None}, "compute capability unknown"),
        ({"libraries": ()}, "pip install torchao"),
        (
            {"roots": (root(layer_counts={"Linear": 1, "Int8MixedPrecisionTrainingLinear": 3}),)},
            "in 8 bits already",
        ),
    ],
)
def test_int8_is_refused_with_the_reason(facts: dict[str, Any], why: str) -> None:
    with pytest.raises(DoesNotApply) as refusal:
        Int8Training().candidates(observation(**{**HOPPER, **facts}))
    assert why in str(refusal.value)


def test_int8_is_tried_on_gpus_without_float8_units_too() -> None:
    (tried,) = Int8Training().candidates(observation(**{**HOPPER, "capability": (8, 0)}))
    assert tried.prior < 1
    fused = {**HOPPER, "capability": (8, 0), "roots": (root(layer_counts={"Linear": 8}, compiled=True),)}
    (compiled,) = Int8Training().candidates(observation(**fused))
    assert compiled.prior > 1


class Llama(nn.Module):
    """Stands for a model of transformers."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.config = SimpleNamespace(model_type=kind)
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What Liger is asked, call by call."""
    calls: list[dict[str, Any]] = []
    _module(monkeypatch, "transformers", PreTrainedModel=Llama)
    _module(monkeypatch, "liger_kernel")
    patch = SimpleNamespace(
        MODEL_TYPE_TO_APPLY_LIGER_FN={
            "llama": lambda model, fused_linear_cross_entropy: None,
            "granite": lambda model: None,
        },
        _apply_liger_kernel_to_instance=lambda **asked: calls.append(asked),
    )
    _module(monkeypatch, "liger_kernel.transformers", monkey_patch=patch)
    return calls


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("fused", [False, True])
def test_liger_changes_the_model_that_was_made(
    wrapped: bool, fused: bool, asked: list[dict[str, Any]]
) -> None:
    model = Llama("llama")
    module = nn.Sequential(model) if wrapped else model
    layers = LigerLayers(fused)
    activate(layers, module)
    module(torch.randn(2, 4))
    assert asked == [{"model": model, "cross_entropy": False, "fused_linear_cross_entropy": fused}]
    assert layers.effect() == (
        True,
        "Liger's layers and loss in llama" if fused else "Liger's layers in llama",
    )


@pytest.mark.parametrize("fused", [False, True])
def test_a_kind_of_model_without_the_fused_loss_has_the_layers_alone(
    fused: bool, asked: list[dict[str, Any]]
) -> None:
    model, layers = Llama("granite"), LigerLayers(fused)
    activate(layers, model)
    model(torch.randn(2, 4))
    assert layers.effect() == (
        (False, "Liger has no fused loss for granite") if fused else (True, "Liger's layers in granite")
    )


def test_a_model_that_liger_does_not_know_is_left_alone(asked: list[dict[str, Any]]) -> None:
    model, layers = Llama("of_tomorrow"), LigerLayers(fused_loss=True)
    activate(layers, model)
    model(torch.randn(2, 4))
    assert not asked
    assert layers.effect() == (False, "Liger has no layers for of_tomorrow")


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"device": "cpu"}, "on the CPU"),
        ({"libraries": ("torchao",)}, "pip install liger-kernel"),
        (
            {"roots": (root(code_files=("/home/me/model.py",)),)},
            "no layer of the model is one of transformers",
        ),
    ],
)
def test_liger_is_refused_with_the_reason(facts: dict[str, Any], why: str) -> None:
    with pytest.raises(DoesNotApply, match=why):
        LigerKernels().candidates(observation(**{**HOPPER, "roots": (LLAMA,), **facts}))


def test_liger_is_tried_with_the_loss_and_without() -> None:
    seen: Observation = observation(**{**HOPPER, "roots": (LLAMA,)})
    assert [each.params["fused_loss"] for each in LigerKernels().candidates(seen)] == [True, False]
