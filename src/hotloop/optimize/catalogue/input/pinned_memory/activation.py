"""The activation of pinned_memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, ValuesView
from typing import Any

from hotloop.optimize.loaders.iterators import IteratorWatch
from hotloop.probe.activation.activation import Activation
from hotloop.probe.frameless import Around

_OF_BATCH = "_hotloop_of_batch"
MAX_DEPTH = 4


class PinnedCopies(Activation):
    """Pins the batches of every loader and makes their copies asynchronous.

    Other page-locked tensors are the program's own: a buffer that it fills again would be filled while it is copied.
    """

    def __init__(self) -> None:
        self.num_copies = 0
        """Copies that were made asynchronous."""
        self._watch = IteratorWatch()

    def on_torch(self) -> None:
        """Watch the iterators and the two methods that copy."""
        import torch

        self._watch.install()
        for name in ("to", "cuda"):
            original = getattr(torch.Tensor, name)
            setattr(torch.Tensor, name, Around(original, self._without_waiting(original, name)))

    def on_loader(self, keywords: dict[str, Any]) -> dict[str, Any]:
        """Pin; without an accelerator DataLoader would warn."""
        if _has_accelerator():
            keywords["pin_memory"] = True
        return keywords

    def on_batch(self, batch: Any) -> Any:
        """Know the batch's tensors when they are copied."""
        for tensor in _tensors(batch, MAX_DEPTH):
            tensor.__dict__[_OF_BATCH] = True
        return batch

    def _without_waiting(self, original: Any, name: str) -> Any:
        def copy(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if (
                tensor.device.type == "cpu"
                and "non_blocking" not in kwargs
                and self._may(tensor, name, args, kwargs)
            ):
                self.num_copies += 1
                kwargs["non_blocking"] = True
            return original(tensor, *args, **kwargs)

        return copy

    def _may(self, tensor: Any, name: str, args: Any, kwargs: Any) -> bool:
        """Whether it copies page-locked memory of a batch to a device, non_blocking not given by position."""
        if not _is_of_batch(tensor):
            return False
        if name == "cuda":
            return len(args) < 2 and _is_pinned(tensor)
        target = args[0] if args else kwargs.get("device")
        if len(args) > 1 and any(isinstance(value, bool) for value in args[1:]):
            return False
        return _is_device(target) and _is_pinned(tensor)

    def effect(self) -> tuple[bool, str]:
        """Return whether batches were pinned and copied without waiting."""
        pinned = any(seen.pin_memory for seen in self._watch.seen)
        if pinned and self.num_copies:
            return True, f"iterators pin their batches; {self.num_copies} copies did not wait"
        if pinned:
            return False, "iterators pin their batches, but no copy of a batch to the device was seen"
        return False, "no iterator that pins its batches was seen"


def _has_accelerator() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def _is_device(target: Any) -> bool:
    """Whether the first argument of `Tensor.to`, maybe a dtype or a tensor, names an accelerator."""
    import torch

    if isinstance(target, int) and not isinstance(target, bool):
        return True
    if isinstance(target, torch.Tensor):
        return bool(target.device.type != "cpu")
    return isinstance(target, (str, torch.device)) and torch.device(target).type not in {"cpu", "meta"}


def _tensors(value: Any, depth: int) -> Iterator[Any]:
    """Yield the tensors of a batch: in lists, dictionaries, and objects of the program's own."""
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif depth:
        parts = value.values() if isinstance(value, Mapping) else value
        if not isinstance(parts, (list, tuple, ValuesView)):
            parts = getattr(value, "__dict__", {}).values()
        for part in parts:
            yield from _tensors(part, depth - 1)


def _is_of_batch(tensor: Any) -> bool:
    """Whether a loader yielded it, or what it is a view of."""
    return any(_OF_BATCH in each.__dict__ for each in (tensor, tensor._base) if each is not None)


def _is_pinned(tensor: Any) -> bool:
    return type(tensor).__name__ in {"Tensor", "Parameter"} and bool(tensor.is_pinned())
