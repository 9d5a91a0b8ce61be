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
