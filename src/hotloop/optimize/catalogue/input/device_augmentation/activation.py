"""The activation of device_augmentation: the last transforms of a data set run on batches, on the model's device."""

from __future__ import annotations

from typing import Any

from hotloop.optimize.catalogue.input.device_augmentation.batch_transforms import for_batches, known_suffix
from hotloop.optimize.dataset.refusal import CannotKeep
from hotloop.optimize.dataset.transform_chain import Held, chain_of
from hotloop.probe.activation.activation import Activation
from hotloop.probe.record.generators import GlobalGenerators

Path = tuple[Any, ...]


class AugmentedBatches(Activation):
    """Takes the last transforms off the chain of a shuffled loader's data set."""

    def __init__(self) -> None:
        self._cut: dict[int, tuple[Any, list[Any]]] = {}
        """By identity of the chain: itself, and the transforms that it had."""
        self._module: Any = None
        self._path: Path = ()
        self._device: Any = None
        self._num_batches = 0
        self._reason = "no shuffled loader over a data set with a chain of transforms was made"

    def on_loader(self, keywords: dict[str, Any]) -> dict[str, Any]:
        """Cut the chain of a training loader; one that a loader without shuffling uses, too, is put together again."""
        dataset: Any = keywords.get("dataset")
        try:
            held = chain_of(dataset)
        except CannotKeep as refusal:
            self._reason = str(refusal)
            return keywords
        chain = held.holder
        if id(chain) in self._cut:
            if not keywords.get("shuffle"):
                self._put_together(id(chain))
            return keywords
        if keywords.get("shuffle") and self._module is None and keywords.get("collate_fn") is None:
            self._cut_off(dataset, chain)
        return keywords

    def _cut_off(self, dataset: Any, chain: Any) -> None:
        given = list(chain.transforms)
        number = known_suffix(given)
        if not number:
            self._reason = "the last of its transforms has no counterpart for batches"
            return
        before = GlobalGenerators()
        chain.transforms = [*given[:-number], Held]
        try:
            path, value = _find(dataset[0], ())
        finally:
            chain.transforms = given
            before.restore()
        if not hasattr(value, "dim") or value.dim() != 3 or not value.is_floating_point():
            self._reason = "what comes before its random transforms is no image of floating-point numbers"
            return
        self._module, self._path = for_batches(given[-number:]), path
        self._cut[id(chain)] = (chain, given)
        chain.transforms = given[:-number]

    def _put_together(self, key: int) -> None:
        chain, given = self._cut[key]
        chain.transforms = given
        self._module = None
        self._reason = "a loader that does not shuffle uses the same transforms"

    def on_root(self, module: Any) -> None:
        """Know the device."""
        self._device = next((parameter.device for parameter in module.parameters()), None)

    def on_batch(self, batch: Any) -> Any:
        """Return the batch with its images transformed."""
        import torch

        if self._module is None or not torch.is_grad_enabled():
            return batch
        with torch.no_grad():
            transformed = _changed(batch, self._path, self._transformed)
        self._num_batches += 1
        return transformed

    def _transformed(self, images: Any) -> Any:
        if self._device is not None:
            images = images.to(self._device, non_blocking=True)
        return self._module.to(images.device)(images)

    def effect(self) -> tuple[bool, str]:
        """Return whether batches were transformed."""
        if not self._num_batches or self._module is None:
            return False, self._reason
        names = ", ".join(type(one).__name__ for one in self._module)
        return True, f"{self._num_batches} batches went through {names} on {self._device or 'the CPU'}"


def _find(sample: Any, path: Path) -> tuple[Path, Any]:
    """Return where in a sample the chain's value stands, and the value."""
    if isinstance(sample, Held):
        return path, sample.value
    parts: list[tuple[Any, Any]] = []
    if isinstance(sample, dict):
        parts = list(sample.items())
    elif isinstance(sample, (tuple, list)):
        parts = list(enumerate(sample))
    for key, part in parts:
        found, value = _find(part, (*path, key))
        if found or value is not None:
            return found, value
    return (), None


def _changed(batch: Any, path: Path, change: Any) -> Any:
    if not path:
        return change(batch)
    if isinstance(batch, dict):
        return {**batch, path[0]: _changed(batch[path[0]], path[1:], change)}
    parts = list(batch)
    parts[path[0]] = _changed(parts[path[0]], path[1:], change)
    return type(batch)(parts)
