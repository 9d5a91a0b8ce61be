"""flash_attention: what is written out becomes one call, where it computes the same."""

from __future__ import annotations

import copy
import inspect
import linecache
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from hotloop.optimize.catalogue.compute.flash_attention import function_swap as live
from hotloop.optimize.catalogue.compute.flash_attention.activation import AttentionSwap
from hotloop.optimize.catalogue.compute.flash_attention.row import FlashAttention
from hotloop.optimize.comparison.function_code import functions_of
from hotloop.optimize.optimization import DoesNotApply
from hotloop.patterns.attention.pattern import attentions

from . import attention_modules as written
from .attention_modules import LENGTH, WIDTH, Attention, Model
from .harness import activate, observation, root

FILE = str(Path(written.__file__))
CAUSAL = torch.tril(torch.ones(LENGTH, LENGTH))
PADDING = torch.zeros(3, 1, 1, LENGTH).index_fill(-1, torch.tensor([LENGTH - 1]), -1e4)


@pytest.fixture(autouse=True)
def code_as_it_was() -> Iterator[None]:
    classes = [cls for cls in vars(written).values() if isinstance(cls, type) and issubclass(cls, Attention)]
    functions = [f for cls in classes for f in functions_of(cls)]
    before = [(function, function.__code__) for function in functions]
    yield
    for function, code in before:
        function.__code__ = code


def trained(model: Any, *args: Any) -> list[torch.Tensor]:
    model.zero_grad()
    torch.manual_seed(1)
    x = torch.randn(3, LENGTH, WIDTH, requires_grad=True)
    output = model(x, *args)
    output.square().sum().backward()
    return [output.detach(), x.grad, *(p.grad.clone() for p in model.parameters())]


@pytest.mark.parametrize(
    ("layer", "args"),
    [
        (written.MinGpt, ()),
        (written.Vit, ()),
        (written.Bert, ()),
        (written.Bert, (PADDING,)),
        (written.Annotated, ()),
        (written.Annotated, (CAUSAL,)),
        (written.Einsum, ()),
        (written.Einsum, (CAUSAL,)),
        (written.Lucid, ()),
        (written.OneExpression, ()),
    ],
)
def test_it_computes_the_same_and_is_seen_to(layer: Any, args: tuple[Any, ...]) -> None:
    model = Model(layer)
    plain = trained(model, *args)
    activation = FlashAttention().activation({})
    assert activation is not None
    activate(activation, model)
    compared = trained(model, *args)
    assert activation.effect() == (False, activation.effect()[1])
    fused = trained(model, *args)
    on, evidence = activation.effect()
    assert on, evidence
    assert "2 calls counted, kernel" in evidence
    for one, same, other in zip(plain, compared, fused, strict=True):
        torch.testing.assert_close(one, same, rtol=0, atol=0)
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("layer", "args", "reason"),
    [
        (written.ReturnsWeights, (), "its weights is used in line"),
        (written.TalkingHeads, (), r"its scores go through self.mix\(\)"),
        (written.OverQueries, (), "its softmax is taken over dimension -2"),
        (written.TensorScale, (), "must be .*, not Parameter|requires grad"),
        # Rows that are masked as a whole: a fill of -1e9 stops the gradient of the scores, adding it does not.
        (written.Annotated, (torch.zeros(LENGTH, LENGTH),), "attention .*: its gradients differ"),
        (written.WithCache, (object(),), "is given a object, which a second run might change"),
    ],
)
def test_what_cannot_be_replaced_is_left_as_it_is(layer: Any, args: tuple[Any, ...], reason: str) -> None:
    model = Model(layer)
    activation = FlashAttention().activation({})
    assert activation is not None
    activate(activation, model)
    plain = trained(model, *args)
    for one, other in zip(plain, trained(model, *args), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    on, evidence = activation.effect()
    assert not on
    assert re.search(reason, evidence), evidence


def changed_source(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    """Let the fused code of the modules be made from other arguments than those found."""
    original = attentions

    def broken(source: str) -> Any:
        found = original(source)
        for each in found:
            object.__setattr__(each, "arguments", each.arguments.replace(old, new))
        return found

    monkeypatch.setattr(live, "attentions", broken)


@pytest.mark.parametrize(
    ("layer", "old", "new", "reason"),
    [
        (written.MinGpt, ", is_causal=True", "", "its outputs differ"),
        (written.MinGpt, "is_causal=True", "attn_mask=self.wide.bool()", "its outputs differ"),
        (written.MinGpt, ", dropout_p=self.p if self.training else 0.0", "", "drops none of the"),
        (written.MinGpt, "self.p if", "0.5 if", "drops 50% of the weights instead of 20%"),
        (written.Lucid, "scale=self.scale", "scale=1.0", "its outputs differ"),
        (written.MinGpt, "q, k, v", "q, k.detach(), v", "its gradients differ"),
    ],
)
def test_a_wrong_replacement_is_refused(
    monkeypatch: pytest.MonkeyPatch, layer: Any, old: str, new: str, reason: str
) -> None:
    changed_source(monkeypatch, old, new)
    model = Model(layer, p=0.2)
    activation = FlashAttention().activation({})
    assert activation is not None
    activate(activation, model)
    for _ in range(3):
        trained(model)
    on, evidence = activation.effect()
    assert not on
    assert reason in evidence


def test_the_comparison_leaves_no_trace() -> None:
    """Random numbers, gradients, buffers and the module itself are what they would have been."""
    model = Model(written.MinGpt, p=0.3)
    plain = trained(model)
    activation = FlashAttention().activation({})
    assert activation is not None
    activate(activation, model)
    for one, other in zip(plain, trained(model), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    trained(model)
    assert not any(layer._forward_hooks for layer in model.layers)
    assert "forward" not in vars(model.layers[0])
    model.__dict__.pop("_compiled_call_impl")
    assert pickle.dumps(copy.deepcopy(model))
    assert list(inspect.signature(written.MinGpt.forward).parameters) == ["self", "x"]


def test_it_goes_on_and_off_in_a_running_program() -> None:
    model, knob = Model(written.MinGpt), AttentionSwap(at_once=False)
    activate(knob, model)
    own = written.MinGpt.forward.__code__
    plain = trained(model)
    for on in (True, False, True, False):
        knob.switch(on)
        assert (written.MinGpt.forward.__code__ is own) is not on
        for one, other in zip(plain, trained(model), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    assert knob.effect()[0]


def test_code_that_is_not_the_file_s_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    text = Path(FILE).read_text().replace("return self.out(y)", "return self.out(y) * 2")
    monkeypatch.setattr(linecache, "getlines", lambda path: text.splitlines(keepends=True))
    found, left = live.written_by(Model(written.MinGpt))
    assert not found
    assert "the file has changed since it was loaded" in left[0]


def test_it_works_under_autocast() -> None:
    model = Model(written.MinGpt)
    activation = FlashAttention().activation({})
    assert activation is not None
    activate(activation, model)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for _ in range(2):
            trained(model)
    assert activation.effect()[0], activation.effect()


def test_candidates_come_from_the_model_s_files(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    seen = observation(roots=(root(code_files=(str(path), str(tmp_path / "gone.py"))),))
    path.write_text("import torch\n")
    with pytest.raises(DoesNotApply, match="writes no attention out"):
        FlashAttention().candidates(seen)
    path.write_text("def f(q, k, v):\n    w = (q @ k.mT).softmax(-1)\n    return w @ v, w\n")
    with pytest.raises(DoesNotApply, match="its w is used in line 3 too"):
        FlashAttention().candidates(seen)
    path.write_text("def f(q, k, v):\n    return (q @ k.mT).softmax(-1) @ v\n")
    assert FlashAttention().candidates(seen)[0].prior > 1
    with pytest.raises(DoesNotApply, match="compiles its model"):
        FlashAttention().candidates(observation(roots=(root(compiled=True, code_files=(str(path),)),)))


def test_programs_that_differentiate_a_gradient_are_left(tmp_path: Path) -> None:
    """Its kernels have no second backward; a penalty may come every 16 steps, in a run that met none."""
    path = tmp_path / "critic.py"
    path.write_text("def f(q, k, v):\n    return (q @ k.mT).softmax(-1) @ v\n")
    roots = (root(code_files=(str(path),)),)
    with pytest.raises(DoesNotApply, match="the program differentiates a gradient"):
        FlashAttention().candidates(observation(roots=roots, double_backward=True))
    text = path.read_text()
    path.write_text(text + "def penalty(y, x):\n    return grad(y, x, create_graph=True)[0].norm()\n")
    with pytest.raises(DoesNotApply, match=r"critic\.py:4 differentiates a gradient"):
        FlashAttention().candidates(observation(roots=roots))
    path.write_text(text + "def saliency(y, x):\n    return grad(y, x, create_graph=False)[0]\n")
    assert FlashAttention().candidates(observation(roots=roots))


@pytest.mark.parametrize(
    "source",
    [
        "def f(x, e):\n    return gate(x).softmax(-1) @ e\n",
        "def f(x):\n    return x @ x.T\n",
        "def f(x:\n",
    ],
)
def test_other_products_are_no_attention(source: str) -> None:
    assert attentions(source) == []


@pytest.mark.parametrize(
    ("lines", "arguments"),
    [
        ("a = q @ k.mT\na = a + b\nw = a.softmax(-1)", "q, k, v, attn_mask=b.to(q.dtype), scale=1.0"),
        ("a = s * (q @ k.mT)\nw = a.softmax(-1)", "q, k, v, scale=s"),
        (
            "a = torch.where(m, q @ k.mT / 2, -torch.inf)\nw = a.softmax(-1)",
            "q, k, v, attn_mask=m, scale=1.0 / 2",
        ),
        (
            "a = q @ k.mT\na.masked_fill_(m, float('-inf'))\nw = a.softmax(-1)",
            "q, k, v, attn_mask=~m, scale=1.0",
        ),
        (
            "a = q @ k.mT\na += torch.triu(torch.full((n, n), float('-inf')), diagonal=1)\nw = a.softmax(-1)",
            "q, k, v, is_causal=True, scale=1.0",
        ),
        (
            "a = q @ k.mT\na = a.masked_fill(m, torch.finfo(a.dtype).min)\nw = a.softmax(-1).to(q.dtype)",
            "q, k, v, attn_mask=(m * torch.finfo(q.dtype).min).to(q.dtype), scale=1.0",
        ),
    ],
)
def test_what_stands_between_the_products_becomes_arguments(lines: str, arguments: str) -> None:
    body = "\n    ".join(lines.splitlines())
    (found,) = attentions(f"def f(q, k, v, m, b, n, s):\n    {body}\n    return w @ v\n")
    assert (found.refused, found.arguments.replace("(m) *", "m *")) == ("", arguments)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("a = q @ k.mT\nw = a.softmax(-1)\nq = q + 1", "q changes between"),
        ("a = q @ k.mT\na = (a + b) * s\nw = a.softmax(-1)", "scaled after something was added"),
        ("a = (q @ k.mT).relu()\nw = a.softmax(-1)", "go through"),
        ("a = q @ k.mT\na = a.masked_fill(m, 0.0)\nw = a.softmax(-1)", "filled with 0.0"),
        ("a = q @ k.mT\nprint(a)\nw = a.softmax(-1)", "its a is used in line 3"),
    ],
)
def test_what_the_kernels_do_not_have_is_refused(lines: str, reason: str) -> None:
    body = "\n    ".join(lines.splitlines())
    (found,) = attentions(f"def f(q, k, v, m, b, s):\n    {body}\n    return w @ v\n")
    assert reason in found.refused


@pytest.mark.parametrize(
    ("constructor", "signature", "before"),
    [
        ("mask = torch.tril(torch.ones(n, n))\n        self.mask = mask", "x, mask", "pass"),
        ("self.mask = None", "x, mask=None", "if mask is None: mask = torch.tril(torch.ones(n, n))"),
        ("self.mask = None", "x", "mask, n = self.masks(x)\n        mask = torch.tril(torch.ones(n, n))"),
        ("self.mask = None", "x", "mask = torch.tril(torch.ones(n, n))\n        mask[x == 0] = 0"),
    ],
)
def test_a_mask_that_may_be_another_is_given_as_it_is(constructor: str, signature: str, before: str) -> None:
    source = f"""
class A:
    def __init__(self, n):
        {constructor}
    def forward(self, {signature}):
        q, k, v = self.qkv(x)
        {before}
        return (q @ k.mT).masked_fill(mask == 0, float("-inf")).softmax(-1) @ v
"""
    (found,) = attentions(source)
    assert (found.refused, found.arguments) == ("", "q, k, v, attn_mask=mask != 0, scale=1.0")


def test_a_buffer_made_of_a_local_of_the_constructor_is_the_triangle_it_is() -> None:
    source = """
SCALE = 2
class A:
    def __init__(self, n):
        mask = torch.tril(torch.ones(n, n))
        self.register_buffer("below", mask.view(1, n, n))
    def forward(self, x):
        q, k, v = self.qkv(x)
        return (q @ k.mT).masked_fill(self.below == 0, float("-inf")).softmax(-1) @ v
"""
    (found,) = attentions(source)
    assert found.arguments == "q, k, v, is_causal=True, scale=1.0"


@pytest.mark.parametrize(
    ("factor", "is_sure"),
    [
        ("2", True),
        ("q.size(-1) ** -0.5", True),
        ("q.shape[-1] ** -0.5", True),
        ("shape[-1] ** -0.5", True),
        ("math.sqrt(anything)", True),
        ("width", True),
        ("SCALE", True),
        ("self.scale", True),
        ("self.config.width ** -0.5", True),
        ("self.given", False),
        ("self.learned", False),
        ("self.tensor", False),
        ("self.elsewhere", False),
        ("slope", False),
        ("torch.sqrt(torch.tensor(width))", False),
    ],
)
def test_only_a_number_is_surely_a_scale(factor: str, is_sure: bool) -> None:
    source = f"""
SCALE = 8 ** -0.5
class A:
    def __init__(self, config, dim, heads, scale=None, given=None):
        per_head = dim // heads
        self.config, self.given = config, given
        self.scale = scale or per_head ** -0.5
        self.learned = nn.Parameter(torch.ones(heads, 1, 1))
        self.tensor = torch.sqrt(torch.FloatTensor([per_head]))
    def forward(self, x, slope):
        q, k, v = self.qkv(x)
        batch, length, width = x.shape
        shape = (batch, length, 2, width // 2)
        return ((q @ k.mT) * ({factor})).softmax(-1) @ v
"""
    (found,) = attentions(source)
    assert found.refused == ""
    assert (not found.unsure) is is_sure, found.unsure
