"""A sigmoid that a model's output is made of is computed in fp32 under autocast."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from hotloop.optimize.catalogue.precision.autocast_bf16 import AutocastBf16
from hotloop.optimize.catalogue.precision.lossy_in_half.row import LossyInHalf
from hotloop.optimize.optimization import Optimization
from hotloop.optimize.program.containers import tensors_in
from hotloop.optimize.reduced_precision.full_sigmoids import FullSigmoids
from hotloop.probe.activation.activation import Activation
from hotloop.probe.record.probabilities import ends_in_sigmoid

from .harness import activate

SURE = 7.0
"""Its sigmoid is 0.9991: 1 in bfloat16."""


class Judge(nn.Module):  # type: ignore[misc]
    """Is sure of everything."""

    def __init__(self, end: Any) -> None:
        super().__init__()
        self.body, self.head, self.end = nn.Linear(16, 8), nn.Linear(8, 1), end
        with torch.no_grad():
            self.head.weight.zero_()
            self.head.bias.fill_(SURE)

    def forward(self, x: torch.Tensor) -> Any:
        return self.end(self.head(self.body(x).tanh()))


class Gated(nn.Module):  # type: ignore[misc]
    """A sigmoid in the middle."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.head = nn.Linear(16, 16), nn.Linear(16, 1)
        self.dtypes: list[torch.dtype] = []

    def forward(self, x: torch.Tensor) -> Any:
        gate = self.gate(x).sigmoid()
        self.dtypes.append(gate.dtype)
        return self.head(x * gate)


def activated(row: Optimization, *models: nn.Module) -> Activation:
    activation = row.activation({})
    assert activation is not None
    for model in models:
        activate(activation, model)
    return activation


@pytest.mark.parametrize("row", [AutocastBf16(), LossyInHalf()], ids=lambda row: str(row.name))
@pytest.mark.parametrize(
    "end",
    [
        nn.Sigmoid(),
        torch.sigmoid,
        torch.special.expit,
        nn.functional.sigmoid,
        lambda x: x.sigmoid().squeeze(1),
        lambda x: {"score": torch.sigmoid(x)},
        lambda x: (x, x.sigmoid().clamp(0, 0.9999)),
    ],
    ids=["module", "function", "expit", "functional", "method", "dictionary", "tuple"],
)
def test_what_is_nearly_sure_is_not_sure(row: Optimization, end: Any) -> None:
    torch.manual_seed(0)
    model = Judge(end)
    activation = activated(row, model)
    for _ in range(3):
        output = tensors_in(model(torch.randn(4, 16)))[-1]
        output.sum().backward()
    assert 0.999 < float(output.detach().max()) < 1, "from the second forward on"
    if isinstance(row, AutocastBf16):
        on, evidence = activation.effect()
        assert on
        assert "sigmoids of outputs in fp32" in evidence


def test_in_a_game_the_model_that_judges_alone() -> None:
    torch.manual_seed(0)
    generator, judge = Gated(), Judge(nn.Sequential(nn.Flatten(0), nn.Sigmoid()))
    generator.head = nn.Linear(16, 16)
    activated(AutocastBf16(), generator, judge)
    for _ in range(3):
        judged = judge(generator(torch.randn(4, 16)))
        judged.sum().backward()
    assert float(judged.detach().max()) < 1
    assert generator.dtypes[1:] == [torch.bfloat16, torch.bfloat16]


def test_a_gate_is_left_to_autocast() -> None:
    model = Gated()
    activation = activated(AutocastBf16(), model)
    for _ in range(3):
        model(torch.randn(4, 16)).sum().backward()
    assert set(model.dtypes) == {torch.bfloat16}
    assert "sigmoids" not in activation.effect()[1]


def test_a_compiled_model_is_judged_by_its_source() -> None:
    """Nobody sees into its graph; it is compiled anew for the second forward, and never again."""
    torch.manual_seed(0)
    judge, graphs = Judge(nn.Sigmoid()), []

    def backend(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    from torch._dynamo.backends.common import aot_autograd

    judge.forward = torch.compile(judge.forward, backend=aot_autograd(fw_compiler=backend))
    activated(AutocastBf16(), judge)
    for _ in range(4):
        output = judge(torch.randn(4, 16))
        output.sum().backward()
    assert float(output.detach().max()) < 1
    forwards = [graph for graph in graphs if "sigmoid" in graph.code and "backward" not in graph.code]
    assert len(forwards) == 2


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointed_activations_are_computed_again_as_they_were(reentrant: bool) -> None:
    """Autocast is on again then, and no mode is: sigmoids there stay as they come."""

    class Checkpointed(Judge):
        def _body(self, x: torch.Tensor) -> torch.Tensor:
            y = self.body(x)
            return y * torch.sigmoid(y)

        def forward(self, x: torch.Tensor) -> Any:
            return torch.sigmoid(self.head(checkpoint(self._body, x, use_reentrant=reentrant)))

    torch.manual_seed(0)
    model = Checkpointed(None)
    activated(AutocastBf16(), model)
    for _ in range(3):
        output = model(torch.randn(4, 16, requires_grad=True))
        output.sum().backward()
    assert float(output.detach().max()) < 1


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (lambda x: x.sigmoid(), True),
        (lambda x: x.sigmoid()[:, None].mean(), True),
        (lambda x: nn.functional.binary_cross_entropy(x.sigmoid(), torch.ones_like(x)), True),
        (lambda x: nn.functional.binary_cross_entropy_with_logits(x, torch.ones_like(x)), False),
        (lambda x: x.tanh(), False),
        (lambda x: nn.functional.linear(x.sigmoid(), torch.ones(1, 1)), False),
        (lambda x: x.softmax(0), False),
        (lambda x: x.detach(), False),
        (lambda x: {"deep": ((x.tanh(), x.sigmoid()),)}, True),
        (lambda x: nn.GRUCell(1, 2)(x, torch.zeros(3, 2)), False),
        (lambda x: nn.GRU(1, 2)(x[None]), False),
        (lambda x: x * x.sigmoid(), False),
        (lambda x: torch.cat((x.sigmoid(), x.tanh())), True),
        (torch.compile(lambda x: x.tanh(), backend="aot_eager"), None),
    ],
)
def test_what_is_made_of_a_sigmoid(end: Any, expected: bool | None) -> None:
    assert ends_in_sigmoid(end(nn.Linear(4, 1)(torch.randn(3, 4)))) is expected


def test_a_model_that_the_program_drops_is_not_kept() -> None:
    model = Judge(nn.Sigmoid())
    context, gone = FullSigmoids().context(model), weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
    with context:
        pass
