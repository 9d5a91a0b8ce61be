"""Copies of a batch that are on their way to the device before the program asks for them."""

from __future__ import annotations

from typing import Any, NamedTuple

from hotloop.probe.frameless import Around

_COPY = "_hotloop_copy"
MAX_DEPTH = 4


class _Copy(NamedTuple):
    tensor: Any
    done: Any
    """The event after it."""
    version: int
    """Of the tensor that was copied: one that the program has changed since is copied anew."""


class MovedAhead:
    """Moves batches on a stream of its own, once the program was seen to move them by itself.

    Attributes:
        num_used: copies that the program asked for and that were there, or under way.
    """

    def __init__(self) -> None:
        self.num_used = 0
        self._device: Any = None
        self._stream: Any = None

    def install(self) -> None:
        """Stand where tensors are copied to a device."""
        import torch

        for name in ("to", "cuda"):
            original = getattr(torch.Tensor, name)
            setattr(torch.Tensor, name, Around(original, self._copying(original)))

    def _copying(self, original: Any) -> Any:
        def copy(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            ahead = tensor.__dict__.pop(_COPY, None) if hasattr(tensor, "__dict__") else None
            if (
                ahead is not None
                and ahead.version == tensor._version
                and _is_plain(args, kwargs, ahead.tensor.device)
            ):
                return self._use(ahead)
            moved = original(tensor, *args, **kwargs)
            if self._device is None and tensor.device.type == "cpu" and moved.device.type == "cuda":
                self._device = moved.device
            return moved

        return copy

    def _use(self, ahead: _Copy) -> Any:
        import torch

        current = torch.cuda.current_stream(ahead.tensor.device)
        current.wait_event(ahead.done)
        ahead.tensor.record_stream(current)
        self.num_used += 1
        return ahead.tensor

    def move(self, batch: Any) -> None:
        """Begin to copy the tensors of a batch; called in the thread that made it."""
        if self._device is None:
            return
        import torch

        if self._stream is None:
            self._stream = torch.cuda.Stream(self._device)
        with torch.cuda.stream(self._stream):
            for tensor in _tensors(batch, MAX_DEPTH):
                pinned = tensor if tensor.is_pinned() else tensor.pin_memory()
                copy = pinned.to(self._device, non_blocking=True)
                done = torch.cuda.Event()
                done.record(self._stream)
                setattr(tensor, _COPY, _Copy(copy, done, tensor._version))


def _tensors(value: Any, depth: int) -> list[Any]:
    import torch

    if type(value) is torch.Tensor:
        return [value] if value.device.type == "cpu" and value.layout is torch.strided else []
    if depth and isinstance(value, dict):
        return [each for part in value.values() for each in _tensors(part, depth - 1)]
    if depth and isinstance(value, (list, tuple)):
        return [each for part in value for each in _tensors(part, depth - 1)]
    return []


def _is_plain(args: Any, kwargs: Any, device: Any) -> bool:
    """Whether a call asks for this device, and for nothing else: `.to(device)`, `.cuda()`, waiting or not."""
    import torch

    if set(kwargs) - {"device", "non_blocking"} or len(args) > 1:
        return False
    wanted = args[0] if args else kwargs.get("device", "cuda")
    if isinstance(wanted, bool) or not isinstance(wanted, (int, str, torch.device)):
        return False
    named = torch.device(wanted)
    return named.type == device.type and named.index in (None, device.index)
