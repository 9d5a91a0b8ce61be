"""CUDA graphs: replayed or not, and outputs that a program keeps; the graph is one whose memory is ours."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from hotloop.optimize.compilation import compiled_forward, graph_replays
from hotloop.optimize.compilation.compiled_forward import CompiledForward
from hotloop.optimize.compilation.graph_replays import GraphReplays


class _Graph:
    """Writes its output to the same memory at every replay."""

    def __init__(self) -> None:
        self.memory = torch.zeros(1)

    def replay(self) -> None:
        self.memory += 1


@pytest.fixture
def graph(monkeypatch: pytest.MonkeyPatch) -> _Graph:
    monkeypatch.setattr(torch.cuda, "CUDAGraph", _Graph, raising=False)
    monkeypatch.setattr(graph_replays, "map_tensors", lambda value, call: call(_OnDevice(value)))
    return _Graph()


class _OnDevice:
    """A tensor that says it lives on a device."""

    is_cuda = True

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def clone(self) -> Any:
        return self._tensor.clone()


class _Parameter:
    is_cuda = True


class _Model:
    def parameters(self) -> list[_Parameter]:
        return [_Parameter()]


def test_what_a_program_keeps_is_not_overwritten_by_the_next_replay(graph: _Graph) -> None:
    replays = GraphReplays()
    kept = []
    for _ in range(3):
        graph.replay()
        kept.append(replays.kept(graph.memory))
    assert [loss.item() for loss in kept] == [1, 2, 3]


@pytest.mark.parametrize("num", [0, 3])
def test_compiled_code_without_a_replay_is_no_effect(
    graph: _Graph, monkeypatch: pytest.MonkeyPatch, num: int
) -> None:
    activation = CompiledForward("reduce-overhead", None)
    monkeypatch.setattr(compiled_forward, "num_graphs", lambda: 1)
    assert activation._graphs is not None
    activation._graphs.watch(_Model())
    activation._num_calls, activation._before = 5, 0
    for _ in range(num):
        graph.replay()
    on, evidence = activation.effect()
    assert on is (num > 0)
    assert f"{num} replays of CUDA graphs" in evidence


def test_a_mode_without_graphs_copies_nothing() -> None:
    assert CompiledForward("default", None)._graphs is None
    assert CompiledForward("max-autotune-no-cudagraphs", None)._graphs is None
