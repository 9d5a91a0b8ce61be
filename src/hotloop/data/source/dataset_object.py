"""A Dataset object of the user's, named `module:attr`: whatever its samples are, as bytes."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import sys
from typing import Any

from hotloop.data.sample import Sample
from hotloop.data.source.structure import fields_of, structure_of
from hotloop.model.errors import ExitCode, HotloopError

NUM_READ_TWICE = 8
"""Samples that are read twice before anything is packed: random ones would be frozen as they came."""


class DatasetObject:
    """A map-style data set, or a function without arguments that returns one.

    Args:
        module: is imported, from the current folder too.
        attribute: of the module; dots lead further.

    Raises:
        HotloopError: there is none, it has no length or indices, or its samples are random.
    """

    classes: tuple[str, ...] | None = None

    def __init__(self, module: str, attribute: str) -> None:
        self._name = f"{module}:{attribute}"
        self._dataset = _found(module, attribute, self._name)
        self._length = _length(self._dataset, self._name)
        first = self._item(0)
        self.structure = structure_of(first)
        self._refuse_random()
        self.fingerprint = self._digest()

    def __len__(self) -> int:
        """Return how many samples there are."""
        return self._length

    def sample(self, index: int) -> Sample:
        """Return one sample.

        Raises:
            HotloopError: reading it fails, or it is made of other things than the first.
        """
        item = self._item(index)
        structure = structure_of(item)
        if structure != self.structure:
            raise HotloopError(
                f"sample {index} of {self._name} is put together as {json.dumps(structure)}, and sample 0 as "
                f"{json.dumps(self.structure)}",
                "let the data set return the same fields for every index",
            )
        return Sample(f"{index:09d}", fields_of(item, structure))

    def forget(self, index: int) -> None:
        """What the data set reads is its own business."""

    def _item(self, index: int) -> Any:
        try:
            return self._dataset[index]
        except Exception as error:  # the user's code may raise what it likes
            raise HotloopError(
                f"{self._name}[{index}] fails: {type(error).__name__}: {error}",
                "correct the data set, and call again: what is packed already is kept",
                ExitCode.PROGRAM_FAILED,
            ) from error

    def _refuse_random(self) -> None:
        step = max(1, self._length // NUM_READ_TWICE)
        for index in range(0, self._length, step):
            if self.sample(index) != self.sample(index):
                raise HotloopError(
                    f"sample {index} of {self._name} differs between reads: shards would freeze it",
                    "pack the data set without its random transforms, and apply them when the shards are read",
                )

    def _digest(self) -> str:
        """Of the first, the middle and the last samples: reading all of them would take as long as packing."""
        digest = hashlib.sha256(f"{self._name}\0{self._length}".encode())
        for index in sorted({0, self._length // 2, self._length - 1}):
            for field, content in self.sample(index).fields.items():
                digest.update(field.encode() + b"\0" + content)
        return digest.hexdigest()


def _found(module: str, attribute: str, name: str) -> Any:
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    found: Any = None
    try:
        found = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
        makes_one = isinstance(found, type) or (callable(found) and not hasattr(found, "__getitem__"))
        return found() if makes_one else found
    except Exception as error:  # a module of the user's may raise what it likes
        if isinstance(error, TypeError) and isinstance(found, type):
            raise _needs_arguments(module, attribute, str(error)) from error
        raise HotloopError(
            f"{name} cannot be loaded: {type(error).__name__}: {error}",
            "name a variable of the module that holds the data set, or a function without arguments that returns it",
            ExitCode.PROGRAM_FAILED,
        ) from error


def _needs_arguments(module: str, attribute: str, why: str) -> HotloopError:
    return HotloopError(
        f"{module}:{attribute} is a class that cannot be made without arguments: {why}",
        f"make one in {module}.py (dataset = {attribute}(...)), and name that: {module}:dataset",
        ExitCode.PROGRAM_FAILED,
    )


def _length(dataset: Any, name: str) -> int:
    try:
        length = len(dataset)
    except Exception:  # it has none, or one that it does not know: NotImplementedError
        length = None
    if length is None or not hasattr(dataset, "__getitem__"):
        raise HotloopError(
            f"{name} is a {type(dataset).__name__} without length or indices, so there is no order to pack it in",
            "name a map-style data set, with __len__ and __getitem__",
        )
    if not length:
        raise HotloopError(f"{name} is empty", "name a data set with samples")
    return length
