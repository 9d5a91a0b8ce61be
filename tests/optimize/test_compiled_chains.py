"""compiled_chains: an expression of several operations becomes a compiled function, where it computes the same."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.utils.checkpoint

from hotloop.optimize.catalogue.compute.compiled_chains.activation import ChainSwap
from hotloop.optimize.catalogue.compute.compiled_chains.kernels import CompiledChain
from hotloop.optimize.catalogue.compute.compiled_chains.pattern import chains
from hotloop.optimize.catalogue.compute.compiled_chains.row import CompiledChains
from hotloop.optimize.comparison.function_code import functions_of
from hotloop.optimize.optimization import DoesNotApply

from . import chain_modules as written
from . import own_name_modules
from .chain_modules import WIDTH, Model
from .harness import activate, observation, root


@pytest.fixture(autouse=True)
def code_as_it_was() -> Iterator[None]:
    modules = (written, own_name_modules)
    classes = [cls for module in modules for cls in vars(module).values() if isinstance(cls, type)]
    before = [(function, function.__code__) for cls in classes for function in functions_of(cls)]
    yield
    for function, code in before:
        function.__code__ = code
    for module in modules:
        for name in [each for each in vars(module) if each.startswith("_hotloop_")]:
            delattr(module, name)
    torch._dynamo.reset()


def trained(model: Any) -> list[torch.Tensor]:
    model.zero_grad()
    torch.manual_seed(1)
    x = torch.randn(5, WIDTH).requires_grad_()
    output = model(x)
    output.square().sum().backward()
    return [output.detach(), x.grad, *(p.grad.clone() for p in model.parameters())]


@pytest.mark.parametrize(
    ("layer", "function"),
    [(written.Rotary, "apply_rotary"), (written.SwiGLU, "SwiGLU.forward"), (written.Gates, "Gates.forward")],
)
def test_it_computes_the_same_and_is_seen_to(layer: Any, function: str) -> None:
    model = Model(layer)
    plain = trained(model)
    swap = ChainSwap(at_once=True, backend="aot_eager")
    activate(swap, model)
    compared = trained(model)
    fused = trained(model)
    on, evidence = swap.effect()
    assert on, evidence
    assert function in evidence
    for one, same, other in zip(plain, compared, fused, strict=True):
        torch.testing.assert_close(one, same, rtol=0, atol=0)
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_the_compiler_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model(written.SwiGLU)
    plain = trained(model)
    activation = CompiledChains().activation({})
    assert isinstance(activation, ChainSwap)
    activate(activation, model)
    trained(model)
    for one, other in zip(plain, trained(model), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    assert activation.effect()[0], activation.effect()


@pytest.mark.parametrize("layer", [written.OnlyLinear, written.Draws])
def test_other_code_is_left(layer: Any) -> None:
    model = Model(layer)
    swap = ChainSwap(at_once=True, backend="aot_eager")
    activate(swap, model)
    before = torch.get_rng_state()
    plain = trained(model)
    torch.set_rng_state(before)
    for one, other in zip(plain, trained(model), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    assert swap.effect() == (False, ChainSwap.nothing)


def test_names_that_only_a_function_knows_are_left_in_it() -> None:
    """What a function imports for itself, and a parameter that is called like a module's import."""
    model = Model(own_name_modules.OwnNames)
    swap = ChainSwap(at_once=True, backend="aot_eager")
    activate(swap, model)
    plain = trained(model)
    for _ in range(2):
        for one, other in zip(plain, trained(model), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    on, evidence = swap.effect()
    assert on, evidence
    assert evidence.startswith("OwnNames.forward (line ")
    assert re.search(r"left: OwnNames\.gate \(line \d+\): F is a name of its own there", evidence)
    (whole,) = [
        one for one in chains(inspect.getsource(own_name_modules)) if one.function == "OwnNames.forward"
    ]
    assert whole.arguments == ("y", "own.sigmoid(y)", "own.tanh(y)")


def test_a_compiler_that_computes_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda plain, **_: lambda *args: plain(*args) * 1.01)
    swap = ChainSwap(at_once=True)
    model = Model(written.SwiGLU)
    plain = trained(model)
    activate(swap, model)
    for _ in range(3):
        for one, other in zip(plain, trained(model), strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=0)
    on, evidence = swap.effect()
    assert not on
    assert "its outputs differ by 1.0e-02, more than rounding" in evidence


@pytest.mark.parametrize(
    ("breaks", "reason"),
    [
        (lambda gate, up: (gate, up.detach()), "its gradients go elsewhere"),
        (lambda gate, up: (gate, up + (up - up.detach()) * 0.1), "its gradients differ"),
        (lambda gate, up: (gate.double(), up), "of another type"),
    ],
)
def test_gradients_and_types_count(breaks: Any, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda plain, **_: lambda *args: plain(*breaks(*args)))
    swap = ChainSwap(at_once=True)
    model = Model(written.SwiGLU)
    activate(swap, model)
    trained(model)
    on, evidence = swap.effect()
    assert not on
    assert reason in evidence


def test_where_the_compiler_fails_the_program_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    fails = list[bool]()

    def compiled(plain: Any, **_: Any) -> Any:
        def call(*args: Any) -> Any:
            if fails:
                raise RuntimeError("no such instruction")
            return plain(*args)

        return call

    monkeypatch.setattr(torch, "compile", compiled)
    chain, x = CompiledChain(lambda x: x.sigmoid() * 2, "inductor"), torch.ones(3)
    chain(x)
    assert chain.agrees
    chain.is_on = True
    fails.append(True)
    torch.testing.assert_close(chain(x), x.sigmoid() * 2)
    assert "no such instruction" in chain.left
    assert not chain.is_on
    with pytest.raises(TypeError):
        chain(x, x)


def test_what_a_second_run_would_change_is_not_run_again() -> None:
    """A cache that grows: the chain alone is compared, not the module."""

    class Cached(written.SwiGLU):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[int] = []

        def forward(self, x: Any) -> Any:
            self.seen.append(len(x))
            return super().forward(x)

    model, swap = Cached(), ChainSwap(at_once=True, backend="aot_eager")
    activate(swap, model)
    for _ in range(3):
        trained(model)
    assert model.seen == [5, 5, 5]
    assert swap.effect()[0], swap.effect()


@pytest.mark.parametrize("layer", [written.SwiGLU, written.Gates])
def test_a_recomputed_forward_is_the_one_that_ran(layer: Any) -> None:
    """One ends in a layer, the other in a chain: there the second forward ends within it."""

    class Recomputed(Model):
        def forward(self, x: Any) -> Any:
            return torch.utils.checkpoint.checkpoint(self.net, x, use_reentrant=False)

    model, swap = Recomputed(layer), ChainSwap(at_once=True, backend="aot_eager")
    plain = trained(model)
    activate(swap, model)
    for _ in range(3):
        for one, other in zip(plain, trained(model), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    assert swap.effect()[0], swap.effect()


def test_it_goes_on_and_off_in_a_running_program() -> None:
    model, knob = Model(written.SwiGLU), ChainSwap(at_once=False, backend="aot_eager")
    activate(knob, model)
    own = written.SwiGLU.forward.__code__
    plain = trained(model)
    for on in (True, False, True):
        knob.switch(on)
        assert (written.SwiGLU.forward.__code__ is own) is not on
        for one, other in zip(plain, trained(model), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_what_a_chain_is() -> None:
    found = {each.function: each for each in chains(inspect.getsource(written))}
    assert set(found) == {"apply_rotary", "SwiGLU.forward", "Gates.forward"}
    swiglu = found["SwiGLU.forward"]
    assert swiglu.text == "lambda a0, a1: (F.silu(a0) * a1)"
    assert swiglu.arguments == ("self.w1(x)", "self.w3(x)")
    rotary = [each for each in chains(inspect.getsource(written)) if each.function == "apply_rotary"]
    assert rotary[0].name == rotary[1].name, "one kernel for both"
    assert rotary[1].text == "lambda a0, a1, a2: ((a0 * a1) + (rotate_half(a0) * a2))"
    assert rotary[1].arguments == ("k", "cos", "sin")


@pytest.mark.parametrize(
    "expression",
    [
        "x.view(a, b * 2 + 1)",
        "n * 2 + m * 3",
        "torch.matmul(a, b) * 2",
        "F.relu(x, inplace=True)",
        "torch.add(a, b, out=c)",
        "torch.add(*rest)",
        "rates.add(1) * 2",
        "x @ y",
        "(",
    ],
)
def test_what_is_none(expression: str) -> None:
    assert chains(f"import torch\nimport torch.nn.functional as F\ndef f():\n    return {expression}\n") == []


def test_candidates_are_models_with_chains(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(inspect.getsource(written))
    seen = observation(roots=(root(code_files=(str(path),)),))
    (candidate,) = CompiledChains().candidates(seen)
    assert candidate.one_off_s == pytest.approx(3 * 4)
    with pytest.raises(DoesNotApply, match="already compiles its model"):
        CompiledChains().candidates(observation(roots=(root(code_files=(str(path),), compiled=True),)))
    with pytest.raises(DoesNotApply, match="differentiates twice"):
        CompiledChains().candidates(observation(roots=seen.program.roots, double_backward=True))
    path.write_text("x = 1\n")
    with pytest.raises(DoesNotApply, match="no chain of pointwise operations"):
        CompiledChains().candidates(seen)
