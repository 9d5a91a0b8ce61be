"""no_grad_evaluation: a graph that nothing uses is not kept, and one that something uses is."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec
import pytest
import torch
from torch import nn

from hotloop.model.observation import RunAccount
from hotloop.optimize.catalogue.compute.no_grad_evaluation import activation as graph_free
from hotloop.optimize.catalogue.compute.no_grad_evaluation.activation import GraphFree
from hotloop.optimize.catalogue.compute.no_grad_evaluation.row import NoGradEvaluation
from hotloop.optimize.optimization import DoesNotApply

from .harness import activate, observation

X = torch.ones(3, 4)


@pytest.fixture(autouse=True)
def lines_of_this_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """The harness stands where the probe would: it is no line of the program's."""

    def line(_: int) -> tuple[str, int]:
        return next(
            (each.filename, each.lineno)
            for each in inspect.stack(0)
            if each.filename == __file__ and each.function != "line"
        )

    monkeypatch.setattr(graph_free, "user_line", line)


def train(model: nn.Module) -> None:
    model.train()
    model(X).sum().backward()


def evaluate(model: nn.Module) -> torch.Tensor:
    model.eval()
    return model(X)


def differentiate(model: nn.Module) -> torch.Tensor:
    model.eval()
    output = model(X)
    output.sum().backward()
    return output


def watched() -> tuple[nn.Module, GraphFree]:
    activation = NoGradEvaluation().activation({})
    assert isinstance(activation, GraphFree)
    model = nn.Sequential(nn.Linear(4, 2), nn.Dropout(0.5))
    activate(activation, model)
    return model, activation


def test_the_second_evaluation_keeps_no_graph() -> None:
    model, activation = watched()
    train(model)
    first = evaluate(model)
    assert first.requires_grad
    train(model)
    second = evaluate(model)
    assert not second.requires_grad
    torch.testing.assert_close(first.detach(), second)
    train(model)
    assert model[0].weight.grad is not None
    on, evidence = activation.effect()
    assert on
    assert evidence.startswith(
        "1 forwards in evaluation mode went without a graph, at test_no_grad_evaluation.py:"
    )


def test_what_is_differentiated_keeps_its_graph() -> None:
    model, activation = watched()
    for _ in range(3):
        train(model)
        assert differentiate(model).requires_grad
    on, evidence = activation.effect()
    assert not on
    assert "left: a backward comes through test_no_grad_evaluation.py:" in evidence


def test_lines_are_judged_one_by_one() -> None:
    model, activation = watched()
    for number in range(3):
        train(model)
        assert differentiate(model).requires_grad
        assert evaluate(model).requires_grad is (number == 0)
    assert activation.effect()[0]


def test_training_in_evaluation_mode_goes_on() -> None:
    model, activation = watched()
    model.eval()
    for _ in range(4):
        model(X).sum().backward()
    assert not activation.effect()[0]


def test_what_asks_for_no_graph_is_left_to_itself() -> None:
    model, activation = watched()
    for _ in range(3):
        train(model)
        with torch.no_grad():
            evaluate(model)
    assert not activation.effect()[0]


class Features(nn.Module):  # type: ignore[misc]
    """What its layer computes is kept: by a hook, or by the model."""

    def __init__(self, kept: str) -> None:
        super().__init__()
        self.layer, self.head = nn.Linear(4, 4), nn.Linear(4, 2)
        self.features: dict[str, torch.Tensor] = {}
        self.of_a_hook: list[torch.Tensor] = []
        self.kept = kept
        if kept == "hook":
            into = self.of_a_hook
            self.layer.register_forward_hook(lambda _module, _inputs, output: into.append(output.square()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layer(x)
        if self.kept == "attribute":
            self.features["layer"] = x.square()
        return self.head(x)

    def loss(self) -> torch.Tensor:
        return (self.of_a_hook or [*self.features.values()])[-1].mean()


@pytest.mark.parametrize(
    ("kept", "reason"),
    [("hook", "hooks are given what is computed at"), ("attribute", "the model keeps what is computed at")],
)
def test_a_backward_beside_the_outputs_goes_on(kept: str, reason: str) -> None:
    model, activation = Features(kept), GraphFree()
    activate(activation, model)
    for _ in range(3):
        train(model)
        model.zero_grad()
        evaluate(model)
        model.loss().backward()
        assert model.layer.weight.grad.norm() > 0
    on, evidence = activation.effect()
    assert not on
    assert f"left: {reason} test_no_grad_evaluation.py:" in evidence


def test_a_generator_learns_by_features_of_a_frozen_model() -> None:
    """A perceptual loss: nothing of the output is used."""
    generator, judge, activation = nn.Linear(4, 4), Features("hook").eval().requires_grad_(False), GraphFree()
    judge.layer.requires_grad_(True)
    for one in (generator, judge):
        activate(activation, one)
    for _ in range(3):
        made = generator(X)
        judge(made)
        generator.zero_grad()
        judge.loss().backward()
        assert generator.weight.grad.norm() > 0
    on, evidence = activation.effect()
    assert not on
    assert "left: gradients go on to the inputs at test_no_grad_evaluation.py:" in evidence


def test_hooks_that_come_later_end_it() -> None:
    """What goes without a graph by then has one again."""
    model, activation = watched()
    heard: list[torch.Tensor] = []
    for number in range(4):
        train(model)
        if number == 2:
            model[0].register_forward_hook(lambda _module, _inputs, output: heard.append(output))
        assert evaluate(model).requires_grad is (number != 1)
    assert "left: hooks are given what is computed at test_no_grad_evaluation.py:" in activation.effect()[1]


def seen(spent: float | None) -> Any:
    run = RunAccount(
        wall_s=60.0,
        parts={"evaluation_s": 10.0, "steps_s": 50.0},
        num_steps=50,
        scored_with_gradients_s=spent,
    )
    return msgspec.structs.replace(observation(), run=run)


def test_it_applies_where_evaluation_kept_graphs() -> None:
    (candidate,) = NoGradEvaluation().candidates(seen(8.0))
    assert 1.0 < candidate.prior < 1.14


@pytest.mark.parametrize(
    ("spent", "reason"), [(None, "were not timed"), (0.0, "no forward in evaluation mode")]
)
def test_where_it_does_not_apply(spent: float | None, reason: str) -> None:
    with pytest.raises(DoesNotApply, match=reason):
        NoGradEvaluation().candidates(seen(spent))
