"""The loader's rate counts samples as the step does."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import DataLoader

from hotloop.whatif.loader_alone import num_samples


def stacked(samples: list[torch.Tensor]) -> torch.Tensor:
    """Positions first, as `pad_sequence` pads texts."""
    return torch.stack(samples, dim=1)


@pytest.mark.parametrize("batch_size", [4, None])
def test_samples_are_counted_and_not_positions(batch_size: int | None) -> None:
    loader = DataLoader([torch.zeros(7)] * 8, batch_size, collate_fn=stacked if batch_size else None)
    batch = next(iter(loader))
    assert num_samples(batch, loader) == (batch_size or 7)
