"""What objects take, with what their attributes hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy
import pytest
import torch
from torch import nn

from hotloop.probe.instruments.object_sizes import address, header_bytes, held_bytes

NUM, SIZE = 500, 8000


@dataclass
class _Step:
    state: Any
    reward: float


@dataclass
class _Slotted:
    __slots__ = ("reward", "state")
    state: Any
    reward: float


class _Nested:
    def __init__(self, state: Any, reward: float) -> None:
        self.info = {"state": state, "reward": reward}


@pytest.mark.parametrize("kind", [_Step, _Slotted, _Nested])
def test_objects_hold_what_their_attributes_hold(kind: Any) -> None:
    memory = [kind(numpy.ones(SIZE // 8), 0.5 * at) for at in range(NUM)]
    assert held_bytes(memory) == pytest.approx(NUM * SIZE, rel=0.1)
    assert header_bytes(memory) < 0.2 * NUM * SIZE, "a reader copies no data"


def test_what_all_entries_share_counts_once() -> None:
    shared = numpy.ones(1_000_000)
    memory = [_Step((shared, numpy.ones(SIZE // 8)), 1.0) for _ in range(NUM)]
    assert held_bytes(memory) == pytest.approx(NUM * SIZE + shared.nbytes, rel=0.1)


def test_an_object_that_refers_to_its_owner_is_no_end_of_memory() -> None:
    owner = _Step([], 0.0)
    owner.state.extend(_Step(owner, 1.0) for _ in range(NUM))
    assert held_bytes(owner) < 1000 * NUM


def test_a_model_s_own_memory_is_not_a_holder_s() -> None:
    model = nn.Linear(1000, 1000)
    assert held_bytes([model]) < 1000
    state = model.state_dict()
    beside = {address(parameter) for parameter in model.parameters()}
    assert held_bytes(state) > 4_000_000
    assert held_bytes(state, beside=beside) < 10_000
    assert held_bytes({"copy": torch.ones(1000)}, beside=beside) > 4000


def test_the_pixels_of_an_image_count() -> None:
    image = pytest.importorskip("PIL.Image")
    images = [image.new("RGB", (100, 100)) for _ in range(NUM)]
    assert held_bytes(images) == pytest.approx(NUM * 30_000, rel=0.1)
