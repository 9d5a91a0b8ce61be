"""Kornia's counterparts of torchvision's transforms: for a whole batch, each sample with random numbers of its own."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

_OURS = "torchvision.transforms"
"""A class of another package may have the same name and do something else."""


def _crop(kornia: Any, transform: Any) -> Any:
    padding = transform.padding
    return kornia.RandomCrop(tuple(transform.size), padding=padding or None, pad_if_needed=False)


def _normalize(kornia: Any, transform: Any) -> Any:
    import torch

    return kornia.Normalize(mean=torch.as_tensor(transform.mean), std=torch.as_tensor(transform.std))


_COUNTERPARTS: dict[str, Callable[[Any, Any], Any]] = {
    "RandomHorizontalFlip": lambda kornia, one: kornia.RandomHorizontalFlip(p=one.p),
    "RandomVerticalFlip": lambda kornia, one: kornia.RandomVerticalFlip(p=one.p),
    "RandomErasing": lambda kornia, one: kornia.RandomErasing(p=one.p, scale=one.scale, ratio=one.ratio),
    "RandomGrayscale": lambda kornia, one: kornia.RandomGrayscale(p=one.p),
    "RandomRotation": lambda kornia, one: kornia.RandomRotation(degrees=one.degrees, p=1.0),
    "GaussianBlur": lambda kornia, one: kornia.RandomGaussianBlur(
        tuple(one.kernel_size), tuple(one.sigma), p=1.0
    ),
    "RandomCrop": _crop,
    "Normalize": _normalize,
}
NAMES = frozenset(_COUNTERPARTS)


def is_installed() -> bool:
    """Whether this Python has Kornia."""
    return importlib.util.find_spec("kornia") is not None


def known_suffix(transforms: Sequence[Any]) -> int:
    """Return how many transforms, from the last on, have a counterpart."""
    number = 0
    for one in reversed(transforms):
        if type(one).__name__ not in NAMES or not type(one).__module__.startswith(_OURS):
            break
        number += 1
    return number


def for_batches(transforms: Sequence[Any]) -> Any:
    """Return one module that does what the transforms do, to a batch."""
    import torch
    from kornia import augmentation

    return torch.nn.Sequential(*(_COUNTERPARTS[type(one).__name__](augmentation, one) for one in transforms))
