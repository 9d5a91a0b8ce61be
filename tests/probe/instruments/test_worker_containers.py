"""A loader worker's containers: those that grow, and those that it copies."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from hotloop.probe.instruments.worker_containers import WorkerContainers

_PROGRAM = """
from functools import cache
import numpy
import torch
from torch.utils.data import Dataset, Subset

@cache
def decoded(index):
    return bytes(100_000)

class Rows(Dataset):
    def __init__(self, names):
        self.names = names
        self.cache = {}
        self.few = [1, 2, 3]
    def __len__(self):
        return len(self.names)
    def __getitem__(self, index):
        decoded(index)
        self.cache[index] = torch.zeros(1000)
        return index

names = [f"/data/class/{at:09d}.jpg" for at in range(20_000)]
listed = Rows(names)
wrapped = Subset(Rows(numpy.array(names, dtype=object)), range(9))
packed = Rows(numpy.array(names, dtype=numpy.bytes_))
del names
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The program, imported."""
    (tmp_path / "worker_program.py").write_text(_PROGRAM)
    monkeypatch.syspath_prepend(str(tmp_path))
    import worker_program  # type: ignore[import-not-found]

    yield worker_program
    del sys.modules["worker_program"]


def test_caches_that_grow_are_named_where_their_data_set_is_walked(program: ModuleType) -> None:
    program.listed[0]
    containers = WorkerContainers(program.listed)
    for at in range(1, 9):
        program.listed[at]
    growing = {one["name"]: one for one in containers.value(8)["growing"]}
    assert set(growing) == {"self.cache", "decoded"}
    assert growing["self.cache"]["bytes_per_step"] == 4000
    assert growing["decoded"]["bytes_per_step"] == pytest.approx(100_000, rel=0.01)


def test_python_objects_are_copied_and_packed_bytes_are_not(program: ModuleType) -> None:
    for data, name in ((program.listed, "self.names"), (program.wrapped, "self.names")):
        copied = WorkerContainers(data).value(1)["copied"]
        assert (copied["name"], copied["num"]) == (name, 20_000)
        assert copied["copied_bytes"] == pytest.approx(20_000 * 79, rel=0.2)
    del program.listed, program.wrapped
    copied = WorkerContainers(program.packed).value(1)["copied"]
    assert copied is None or copied["path"] != program.__file__, "other tests' globals may be copied"
