"""fused_pointwise: an activation function that is written out becomes one call, where it computes the same."""

from __future__ import annotations

import ast
import copy
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from hotloop.optimize.catalogue.compute.fused_pointwise.activation import PointwiseSwap
from hotloop.optimize.catalogue.compute.fused_pointwise.row import FusedPointwise
from hotloop.optimize.comparison import rewritten
from hotloop.optimize.comparison.function_code import functions_of
from hotloop.optimize.optimization import DoesNotApply
from hotloop.patterns.activations.formula import formula
from hotloop.patterns.activations.pattern import written_out

from . import activation_modules as written
from .activation_modules import WIDTH, Model
from .harness import activate, observation, root


@pytest.fixture(autouse=True)
def code_as_it_was() -> Iterator[None]:
    classes = [cls for cls in vars(written).values() if isinstance(cls, type)]
    before = [(function, function.__code__) for cls in classes for function in functions_of(cls)]
    yield
    for function, code in before:
        function.__code__ = code


def trained(model: Any) -> list[torch.Tensor]:
    model.zero_grad()
    torch.manual_seed(1)
    x = (3 * torch.randn(5, WIDTH)).requires_grad_()
    output = model(x)
    output.square().sum().backward()
    return [output.detach(), x.grad, *(p.grad.clone() for p in model.parameters())]


@pytest.mark.parametrize(
    ("layer", "name"),
    [
        (written.NewGELU, "gelu"),
        (written.RoundedGELU, "gelu"),
        (written.ErfGELU, "gelu"),
        (written.Swish, "silu"),
        (written.SwishByExp, "silu"),
        (written.Mish, "mish"),
        (written.ByFunction, "gelu"),
        (written.InALayer, "silu"),
    ],
)
def test_it_computes_the_same_and_is_seen_to(layer: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    plainly = rewritten.torchs
    monkeypatch.setattr(rewritten, "torchs", lambda name: called.append(name) or plainly(name))
    model = Model(layer)
    plain = trained(model)
    activation = FusedPointwise().activation({})
    assert activation is not None
    activate(activation, model)
    compared = trained(model)
    fused = trained(model)
    on, evidence = activation.effect()
    assert on, evidence
    assert "1 calls counted" in evidence
    assert set(called) == {name}
    for one, same, other in zip(plain, compared, fused, strict=True):
        torch.testing.assert_close(one, same, rtol=0, atol=0)
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layer", [written.QuickGELU, written.Gated, written.OnTheSpot, written.TorchsOwn])
def test_what_is_no_known_function_of_one_value_is_left(layer: Any) -> None:
    model = Model(layer)
    activation = FusedPointwise().activation({})
    assert activation is not None
    activate(activation, model)
    plain = trained(model)
    for one, other in zip(plain, trained(model), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    assert activation.effect() == (False, PointwiseSwap.nothing)


def test_a_wrong_replacement_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewritten, "torchs", lambda _: torch.nn.functional.relu)
    model = Model(written.Swish)
    activation = FusedPointwise().activation({})
    assert activation is not None
    activate(activation, model)
    for _ in range(3):
        trained(model)
    on, evidence = activation.effect()
    assert not on
    assert "its outputs differ" in evidence


def test_it_goes_on_and_off_in_a_running_program() -> None:
    model, knob = Model(written.NewGELU), PointwiseSwap(at_once=False)
    activate(knob, model)
    own = written.NewGELU.forward.__code__
    plain = trained(model)
    for on in (True, False, True, False):
        knob.switch(on)
        assert (written.NewGELU.forward.__code__ is own) is not on
        for one, other in zip(plain, trained(model), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    assert pickle.dumps(copy.deepcopy(model.net[1]))


def test_candidates_come_from_the_model_s_files(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    seen = observation(roots=(root(code_files=(str(path), str(tmp_path / "gone.py"))),))
    path.write_text("import torch\ndef f(x, y):\n    return x * torch.sigmoid(y)\n")
    with pytest.raises(DoesNotApply, match="writes no activation function out"):
        FusedPointwise().candidates(seen)
    path.write_text("import torch\ndef f(x):\n    return x * torch.sigmoid(x)\n")
    assert FusedPointwise().candidates(seen)[0].prior > 1
    with pytest.raises(DoesNotApply, match="compiles its model"):
        FusedPointwise().candidates(observation(roots=(root(compiled=True, code_files=(str(path),)),)))


@pytest.mark.parametrize(
    "source",
    [
        "0.5 * x * (1 + torch.tanh(0.8 * (x + 0.044715 * x**3)))",
        "torch.sigmoid(x)",
        "x * torch.sigmoid(x).item()",
        "x[0] * torch.sigmoid(x[0])",
        "x * torch.sigmoid(x, out=y)",
        "1 / 0 * torch.tanh(x)",
        "x * torch.exp(1e9 * x)",
        "'x' * tanh(x)",
        "x * tanh",
        "x / (1 + np.exp(-x))",
        "x / (1 + math.exp(-x))",
        "x / (1 + exp(-x))",
        "x / (1 + 2.718281828459045 ** -x)",
        "x * np.tanh(np.log1p(np.exp(x)))",
    ],
)
def test_other_formulas_are_nothing(source: str) -> None:
    assert formula(ast.parse(source, mode="eval").body) is None


def test_what_is_no_python_holds_nothing() -> None:
    assert written_out("def f(x:\n    tanh") == []
    assert written_out("tanh " + "(" * 5000) == []
