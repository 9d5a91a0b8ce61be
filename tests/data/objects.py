"""Data sets that are packed by name: `tests.data.objects:samples`."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from PIL import Image


class Listed:
    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        return self.items[index]


def _item(number: int) -> dict[str, Any]:
    generator = np.random.default_rng(number)
    return {
        "pair": (torch.full((2, number % 3), number / 7), [number, None, float("nan"), True, 0.1 * number]),
        "array": generator.normal(size=(2, 2)).astype(np.float16),
        "scalar": np.int64(number),
        "image": Image.fromarray(generator.integers(0, 256, (3, 5, 3), dtype=np.uint8)),
        "text": "naïve\n\x00",
        "a.b/c": bytes([number, 0, 255]),
    }


samples = Listed([_item(number) for number in range(11)])


def made() -> Listed:
    return Listed([(torch.tensor(float(number)), number) for number in range(3)])


class Augmented(Listed):
    def __getitem__(self, index: int) -> Any:
        return random.random()


augmented = Augmented([None] * 4)
uneven = Listed([1, 2, "three"])
strange = Listed([object()])
no_indices = iter([1, 2])
tokens = Listed(
    [
        {"ids": list(range(number)), "boxes": [{"box": [0.1, number], "of": "a"}] * number, "text": "x"}
        for number in range(5)
    ]
)
"""As Hugging Face data sets and COCO give them: lists whose length differs."""
