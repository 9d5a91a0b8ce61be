"""Which functions give every sample the same."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from hotloop.probe.instruments.batch_parts import BatchParts

_PROGRAM = """
import random
import torch
from torch.utils.data import DataLoader, Dataset

def bank(n):
    return torch.tensor([[float(i * j) for i in range(n)] for j in range(n)])

def chance(n):
    return random.random() * n

class Samples(Dataset):
    def __init__(self):
        self.rows = [list(range(1, 3 + i % 5)) for i in range(32)]
        self.scale = 3.0

    def __len__(self):
        return 32

    def factor(self):
        return torch.full((4,), self.scale).sum()  # inner

    def weights(self):
        return self.factor() * torch.ones(2)

    def __getitem__(self, index):
        table = bank(12)  # table
        shift = chance(2)  # chance
        weights = self.weights()  # weights
        first = bank(index + 2)  # other
        return self.rows[index]

def to_twelve(rows):
    batch = torch.zeros(len(rows), 12, dtype=torch.long)
    for number, row in enumerate(rows):
        batch[number, : len(row)] = torch.tensor(row)
    return batch

def load(width):
    rows = to_twelve if width else (lambda rows: rows)
    for batch in DataLoader(Samples(), batch_size=8, collate_fn=rows):
        pass
"""


@pytest.fixture
def value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What loading it showed."""
    (tmp_path / "loading_program.py").write_text(_PROGRAM)
    monkeypatch.syspath_prepend(str(tmp_path))
    import loading_program  # type: ignore[import-not-found]

    parts = BatchParts()
    parts.install()
    try:
        loading_program.load(width=True)
    finally:
        parts.remove()
        del sys.modules["loading_program"]
    assert sys.getprofile() is None
    return parts.value()


def test_calls_with_one_result_are_constant_and_the_outermost_is_named(value: dict[str, Any]) -> None:
    lines = _PROGRAM.splitlines()
    marks = {lines[row["line"] - 1].partition("# ")[2]: row for row in value["constant"]}
    assert set(marks) == {"table", "weights"}
    assert marks["table"]["called"] == "bank"
    assert marks["table"]["num"] == marks["table"]["samples"] == 24, "three batches are looked at"
    assert 0 < marks["table"]["share"] < 1


def test_rows_that_were_padded_before_collating() -> None:
    import torch

    from hotloop.probe.instruments.sample_length import padding

    tokens = torch.zeros(6, 16, dtype=torch.long)
    for row, length in enumerate((3, 5, 4, 8, 6, 7)):
        tokens[row, :length] = 7
    table = torch.randint(1, 9, (6, 16))
    table[:, 15] = 12
    assert padding([16] * 6, {"input_ids": tokens, "labels": torch.zeros(6)}) == (33, 15, 48)
    for batch in (table, tokens.float(), torch.randint(1, 9, (6, 16))):
        assert padding([16] * 6, batch) == (96, 0, 0)


def test_rows_of_a_table_in_memory_and_samples_that_are_made() -> None:
    import numpy as np
    import torch

    from hotloop.probe.instruments.memory_rows import are_rows

    table, labels, pictures = torch.randn(8, 4), np.arange(8), np.zeros((8, 3))
    assert are_rows([(table[at], int(labels[at])) for at in range(4)])
    assert are_rows([{"x": pictures[at], "y": table[at]} for at in range(4)])
    assert not are_rows([(table[at] * 2, 1) for at in range(4)]), "computed"
    assert not are_rows([(torch.randn(9, 4)[at], 1) for at in range(4)]), "of tables of their own"
    assert not are_rows([(table[at], "a name") for at in range(4)])
    assert not are_rows([1, 2, 3]), "nothing is copied"
