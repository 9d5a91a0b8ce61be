"""fused_layers: a normalization that is written out becomes one call, where it computes the same."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.utils.checkpoint

from hotloop.optimize.catalogue.compute.compiled_chains.activation import ChainSwap
from hotloop.optimize.catalogue.compute.compiled_chains.row import CompiledChains
from hotloop.optimize.catalogue.compute.fused_layers.activation import NormSwap
from hotloop.optimize.catalogue.compute.fused_layers.pattern import written_norms
from hotloop.optimize.catalogue.compute.fused_layers.row import FusedLayers
from hotloop.optimize.comparison import rewritten
from hotloop.optimize.comparison.function_code import functions_of
from hotloop.optimize.optimization import DoesNotApply

from . import norm_modules as written
from .harness import activate, observation, root
from .norm_modules import WIDTH, Model


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
    ("norm", "name"),
    [
        (written.BertLayerNorm, "layer_norm"),
        (written.ByVariance, "layer_norm"),
        (written.OtherNames, "layer_norm"),
        (written.WithoutBias, "layer_norm"),
        (written.LlamaRMSNorm, "rms_norm"),
        (written.MetaRMSNorm, "rms_norm"),
        (written.GemmaRMSNorm, "rms_norm"),
    ],
)
def test_it_computes_the_same_and_is_seen_to(norm: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    plainly = rewritten.torchs
    monkeypatch.setattr(rewritten, "torchs", lambda name: called.append(name) or plainly(name))
    model = Model(norm)
    plain = trained(model)
    activation = FusedLayers().activation({})
    assert activation is not None
    activate(activation, model)
    compared = trained(model)
    fused = trained(model)
    on, evidence = activation.effect()
    assert on, evidence
    assert "2 calls counted" in evidence
    assert set(called) == {name}
    for one, same, other in zip(plain, compared, fused, strict=True):
        torch.testing.assert_close(one, same, rtol=0, atol=0)
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "norm",
    [
        written.AnnotatedTransformer,
        written.Unbiased,
        written.OverChannels,
        written.TorchsOwn,
        written.CountsItsCalls,
        written.InPlace,
        written.WithResidual,
    ],
)
def test_other_layers_are_left(norm: Any) -> None:
    model = Model(norm)
    knob = NormSwap(at_once=True)
    activate(knob, model)
    plain = trained(model)
    for one, other in zip(plain, trained(model), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    assert knob.effect() == (False, NormSwap.nothing)


def test_the_epsilon_is_the_program_s() -> None:
    (of_names,) = written_norms(inspect.getsource(written.OtherNames))
    assert of_names.arguments == "x, x.shape[-1:], self.a_2, self.b_2, 1e-06"
    (of_gemma,) = written_norms(inspect.getsource(written.GemmaRMSNorm))
    assert of_gemma.arguments == "x, x.shape[-1:], 1 + self.weight, self.eps"


def test_a_wrong_replacement_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    norm = torch.nn.functional.layer_norm
    monkeypatch.setattr(rewritten, "torchs", lambda _: lambda x, shape, w, b, eps: norm(x, shape, w, b, 0.1))
    knob = NormSwap(at_once=True)
    model = Model(written.BertLayerNorm)
    activate(knob, model)
    for _ in range(3):
        trained(model)
    on, evidence = knob.effect()
    assert not on
    assert "its outputs differ" in evidence


def test_another_dtype_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    norm = torch.nn.functional.layer_norm
    monkeypatch.setattr(rewritten, "torchs", lambda _: lambda x, *args: norm(x, *args).double())
    knob = NormSwap(at_once=True)
    model = Model(written.BertLayerNorm)
    activate(knob, model)
    trained(model)
    on, evidence = knob.effect()
    assert not on
    assert "it gives float64 instead of float32" in evidence


def test_a_class_with_another_helper_below_keeps_both_as_they_are() -> None:
    class Centred(written.WithHelpers):
        def _norm(self, x: Any) -> Any:
            return x - x.mean(-1, keepdim=True)

    knob = NormSwap(at_once=True)
    model = Model(written.WithHelpers)
    activate(knob, model)
    trained(model)
    on, evidence = knob.effect()
    assert not on
    assert "a class that derives from it has methods of its own" in evidence
    del Centred


def test_a_layer_that_another_optimization_changed_is_left_with_the_reason() -> None:
    """A normalization is a chain of pointwise operations, too: the two rows cannot be on together."""
    model, chains, norms = Model(written.ByVariance), ChainSwap(at_once=True), NormSwap(at_once=True)
    chains.on_root(model)
    norms.on_root(model)
    assert norms.effect()[1].endswith("another optimization has changed it already")
    assert FusedLayers.name in CompiledChains.conflicts


def test_in_one_source_too() -> None:
    source = inspect.getsource(written.WithHelpers)
    below = "class Centred(WithHelpers):\n    def _norm(self, x):\n        return x\n"
    assert written_norms(source)
    assert not written_norms(f"{source}\n\n{below}")


def test_two_models_share_a_class() -> None:
    one, other = Model(written.MetaRMSNorm), Model(written.MetaRMSNorm)
    knob = NormSwap(at_once=True)
    activate(knob, one)
    own = written.MetaRMSNorm.forward.__code__
    trained(one)
    trained(one)
    assert written.MetaRMSNorm.forward.__code__ is not own
    activate(knob, other)
    trained(other)
    assert written.MetaRMSNorm.forward.__code__ is not own, "on again after the second comparison"
    assert knob.effect()[0]


@pytest.mark.parametrize(
    ("size", "why"),
    [("1", "one value"), ("1, 1, size", "more dimensions"), ("(size,)", "more dimensions"), ("size", "")],
)
def test_its_source_says_whether_a_patch_may_write_the_call(size: str, why: str) -> None:
    source = (
        "class Norm:\n    def __init__(self, size):\n"
        f"        self.weight = nn.Parameter(torch.ones({size}))\n"
        "    def forward(self, x):\n"
        "        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)\n"
    )
    (found,) = written_norms(source)
    assert why in found.unsure
    assert bool(found.unsure) is bool(why)


def test_it_goes_on_and_off_in_a_running_program() -> None:
    model, knob = Model(written.MetaRMSNorm), NormSwap(at_once=False)
    activate(knob, model)
    own = written.MetaRMSNorm.forward.__code__
    plain = trained(model)
    for on in (True, False, True, False):
        knob.switch(on)
        assert (written.MetaRMSNorm.forward.__code__ is own) is not on
        for one, other in zip(plain, trained(model), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_candidates_are_classes_that_the_model_has(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text("\n".join(map(inspect.getsource, (written.BertLayerNorm, written.LlamaRMSNorm))))

    def seen(layers: dict[str, int], device: str = "cpu", *, compiled: bool = False) -> Any:
        facts = root(code_files=(str(path),), layer_counts=layers, compiled=compiled)
        return observation(roots=(facts,), device=device)

    assert FusedLayers().candidates(seen({"BertLayerNorm": 2}))[0].prior > 1
    assert FusedLayers().candidates(seen({"LlamaRMSNorm": 2}, "cuda"))
    with pytest.raises(DoesNotApply, match="no kernel of its own"):
        FusedLayers().candidates(seen({"LlamaRMSNorm": 2}))
    with pytest.raises(DoesNotApply, match="writes a normalization out"):
        FusedLayers().candidates(seen({"Linear": 2}))
    with pytest.raises(DoesNotApply, match="compiles its model"):
        FusedLayers().candidates(seen({"BertLayerNorm": 2}, compiled=True))


@pytest.mark.parametrize(
    "source",
    [
        "class Norm(nn.Module:\n    sqrt",
        "sqrt " + "(" * 5000,
        "class Norm:\n    def forward(self, x):\n        return np.sqrt(x)",
        "class Norm:\n    def forward(self, x):\n        return x.mean(-1) / x.sqrt(0)",
        "class Norm:\n    def forward(self):\n        return self.sqrt(2)",
        "class Norm:\n    def forward(self, x):\n        return self.forward(x.sqrt())",
        "class Norm:\n    def forward(self, x):\n        return 10**10**10 * x.sqrt()",
    ],
)
def test_other_sources_hold_nothing(source: str) -> None:
    assert written_norms(source) == []


def test_within_a_checkpointed_block() -> None:
    """A second forward has to save as many tensors as the first: those of the comparison are none of them."""

    class Recomputed(Model):
        def forward(self, x: Any) -> Any:
            return torch.utils.checkpoint.checkpoint(self.net, x, use_reentrant=False)

    model, knob = Recomputed(written.BertLayerNorm), NormSwap(at_once=True)
    plain = trained(model)
    activate(knob, model)
    for _ in range(3):
        for one, other in zip(plain, trained(model), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    assert knob.effect()[0], knob.effect()
