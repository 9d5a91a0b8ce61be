"""Where a sample's time goes: parts are told apart, nested ones counted once, and everything is put back."""

from __future__ import annotations

import builtins
import io
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageFile
from torch.utils.data import DataLoader, Dataset, Subset
from torch.utils.data._utils.fetch import _MapDatasetFetcher

from hotloop.probe.instruments.loading import Loading
from hotloop.probe.probe import Probe

N = 12


class Compose:
    """As torchvision's."""

    def __init__(self, transforms: list[Any]) -> None:
        self.transforms = transforms

    def __call__(self, value: Any) -> Any:
        for transform in self.transforms:
            value = transform(value)
        return value


class Slow:
    """Takes most of the time."""

    def __call__(self, image: Any) -> Any:
        time.sleep(0.005)
        return image.resize((8, 8))


class Mirror(torch.nn.Module):
    """Draws a random number."""

    def forward(self, image: Any) -> Any:
        return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if random.random() < 0.5 else image


def to_tensor(image: Any) -> torch.Tensor:
    return torch.from_numpy(np.array(image))


class Images(Dataset[Any]):
    def __init__(self, folder: Path) -> None:
        self.paths = [folder / f"{number}.jpg" for number in range(N)]
        for path in self.paths:
            Image.new("RGB", (64, 64), (10, 20, 30)).save(path)
        self.transform = Compose([Slow(), Mirror(), to_tensor])

    def __len__(self) -> int:
        return N

    def __getitem__(self, index: int) -> Any:
        raw = self.paths[index].open("rb").read()
        return self.transform(Image.open(io.BytesIO(raw)).convert("RGB")), index


@pytest.fixture
def seen(tmp_path: Path, probe: Probe) -> dict[str, Any]:
    """What is seen of two epochs over a part of the images."""
    batches = DataLoader(Subset(Images(tmp_path), range(8)), batch_size=4)
    instrument = Loading(probe)
    instrument.start()
    try:
        for _ in range(2):
            for images, _ in batches:
                assert images.shape == (4, 8, 8, 3)
    finally:
        value = instrument.stop()
    return value


def parts(value: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["kind"], row["name"]): row for row in value["parts"]}


def test_every_part_is_told_apart(seen: dict[str, Any]) -> None:
    found = parts(seen)
    assert {kind for kind, _ in found} == {"own", "open", "read", "decode", "transform", "collate"}
    counts = {name: row["count"] for (kind, name), row in found.items() if kind == "transform"}
    assert counts == {"Slow": 16, "Mirror": 16, "to_tensor": 16}, "what a transform calls is the transform's"
    assert (seen["batches"], seen["samples"]) == (4, 16)
    assert seen["used_bytes"] == 16 * (8 * 8 * 3 + 8)


def test_the_slowest_is_named_with_its_line(seen: dict[str, Any]) -> None:
    slowest = max(seen["parts"], key=lambda row: row["own_ns"])
    assert (slowest["name"], slowest["path"]) == ("Slow", __file__)
    lines = Path(__file__).read_text().splitlines()
    assert "def __call__(self, image" in lines[slowest["line"] - 1]


def test_what_draws_random_numbers_is_seen(seen: dict[str, Any]) -> None:
    random_ones = {name: row["random"] for (kind, name), row in parts(seen).items() if kind == "transform"}
    assert random_ones == {"Slow": False, "Mirror": True, "to_tensor": False}


def test_everything_is_put_back(tmp_path: Path, probe: Probe) -> None:
    def all_of() -> tuple[Any, ...]:
        return (
            vars(_MapDatasetFetcher)["fetch"],
            vars(ImageFile.ImageFile)["load"],
            Image.open,
            builtins.open,
            vars(Slow)["__call__"],
            vars(Mirror).get("__call__"),
            dataset.transform.transforms[2],
        )

    dataset = Images(tmp_path)
    before = all_of()
    instrument = Loading(probe)
    instrument.start()
    next(iter(DataLoader(dataset, batch_size=4)))
    assert all_of() != before
    instrument.stop()
    assert all_of() == before


def test_the_programs_random_numbers_are_not_touched(tmp_path: Path, probe: Probe) -> None:
    def drawn() -> list[torch.Tensor]:
        random.seed(3)
        return [images for images, _ in DataLoader(dataset, batch_size=4)]

    dataset = Images(tmp_path)
    fresh = drawn()
    instrument = Loading(probe)
    instrument.start()
    looked_at = drawn()
    instrument.stop()
    assert all(torch.equal(one, other) for one, other in zip(fresh, looked_at, strict=True))


def _to_longest(samples: list[torch.Tensor]) -> torch.Tensor:
    return torch.nn.utils.rnn.pad_sequence(samples)


def _to_maximum(samples: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    rows = torch.zeros(len(samples), 10)
    for row, sample in zip(rows, samples, strict=True):
        row[: len(sample)] = sample
    return {"rows": rows}


@pytest.mark.parametrize(
    ("collate", "padding"),
    [(_to_longest, (16, 6, 0)), (_to_maximum, (16, 6, 18)), (torch.cat, (16, 0, 0)), (list, (16, 0, 0))],
    ids=["to the longest", "to a maximum", "concatenated", "listed"],
)
def test_only_what_is_padded_is_padding(probe: Probe, collate: Any, padding: tuple[int, int, int]) -> None:
    rows = [torch.ones(length) for length in (2, 6, 3, 5)]
    instrument = Loading(probe)
    instrument.start()
    list(DataLoader(rows, batch_size=2, collate_fn=collate))  # type: ignore[arg-type]
    assert instrument.stop()["padding"] == padding


class _Graph:
    def __init__(self, num: int) -> None:
        self.nodes = torch.ones(num, 3)


def test_tensors_of_objects_count(probe: Probe) -> None:
    instrument = Loading(probe)
    instrument.start()
    list(DataLoader([_Graph(2), _Graph(5)], batch_size=2, collate_fn=list))  # type: ignore[arg-type]
    assert instrument.stop()["used_bytes"] == 7 * 3 * 4


def test_a_data_set_that_raises_raises(tmp_path: Path, probe: Probe) -> None:
    dataset = Images(tmp_path)
    dataset.paths[1].unlink()
    instrument = Loading(probe)
    instrument.start()
    with pytest.raises(FileNotFoundError):
        next(iter(DataLoader(dataset, batch_size=4)))
    assert instrument.stop()["batches"] == 0
