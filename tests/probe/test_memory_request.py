"""What a failing operation would have made is known without its memory."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from hotloop.probe.memory_failure.live_storages import BACKWARD, FORWARD
from hotloop.probe.memory_failure.request import PARAMETER_GRADIENT, phase_of_request, result_shape

ATEN = torch.ops.aten


@pytest.mark.parametrize(
    ("operator", "args", "shape"),
    [
        (ATEN.bmm.default, (torch.ones(2, 5, 3), torch.ones(2, 3, 5)), (2, 5, 5)),
        (
            ATEN.embedding_dense_backward.default,
            (torch.ones(4, 8), torch.arange(4), 1_000_000_000, -1, False),
            (1_000_000_000, 8),
        ),
        (ATEN.topk.default, (torch.ones(6), 2), (2,)),
        (ATEN.nonzero.default, (torch.ones(6),), None),
    ],
)
def test_its_shape(operator: Any, args: Any, shape: tuple[int, ...] | None) -> None:
    assert result_shape(operator, args, {}) == shape


def test_the_device_it_asked_on_does_not_matter() -> None:
    device = torch.device("cpu")
    assert result_shape(ATEN.zeros.default, ([1 << 40],), {"device": device}) == (1 << 40,)


def test_the_gradient_of_a_parameter_is_told_from_an_activation_s() -> None:
    layer = nn.Linear(331, 117)
    assert phase_of_request(BACKWARD, (331, 117)) == PARAMETER_GRADIENT, "made the other way round"
    assert phase_of_request(BACKWARD, (331, 118)) == BACKWARD
    assert phase_of_request(FORWARD, (331, 117)) == FORWARD
    assert phase_of_request(BACKWARD, None) == BACKWARD
    assert layer.weight.shape == (117, 331)
