"""An integer matrix is text for a model that mixes positions, and a table of ids for another."""

from __future__ import annotations

import pytest
from torch import nn

from hotloop.probe.hook_points.sequence_model import reads_sequences


class CausalSelfAttention(nn.Module):
    """Somebody's own."""


@pytest.mark.parametrize(
    ("model", "reads"),
    [
        (nn.Sequential(nn.Embedding(9, 4), nn.LSTM(4, 4)), True),
        (nn.TransformerEncoderLayer(4, 1), True),
        (nn.Sequential(CausalSelfAttention()), True),
        (nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(8, 1)), False),
    ],
)
def test_a_model_reads_sequences_if_a_part_mixes_positions(model: nn.Module, reads: bool) -> None:
    assert reads_sequences(model) is reads
