"""Copies of tensors to pinned host memory and back, on streams beside the one that computes."""

from __future__ import annotations

from typing import Any


class Link:
    """The link between one device and the host.

    Each direction has a stream of its own, so that copies out do not hold up copies back. A copy waits for what makes
    its tensor; whatever uses a tensor that came back waits for its copy; nothing else waits.

    Args:
        cuda: `torch.cuda`.
        device: of the tensors.
        copies: makes the tensors and queues the copies.
    """

    def __init__(self, cuda: Any, device: Any, copies: Any) -> None:
        self._cuda = cuda
        self._device = device
        self._copies = copies
        self._out = cuda.Stream(device)
        self._back = cuda.Stream(device)

    def out(self, flat: Any) -> Any:
        """Return a copy on the host, under way, and the event after it."""
        self._out.wait_stream(self._cuda.current_stream(self._device))
        with self._cuda.stream(self._out):
            host = self._copies.to_host(flat)
        flat.record_stream(self._out)  # its memory is not given away before it is copied
        return host, self._out.record_event()

    def back(self, host: Any, gone: Any) -> Any:
        """Return a copy on the device, under way, and the event after it.

        Args:
            host: what came out.
            gone: the event after its way out.
        """
        self._back.wait_event(gone)
        with self._cuda.stream(self._back):
            flat = self._copies.to_device(host, self._device)
        return flat, self._back.record_event()

    def arrive(self, flat: Any, come: Any) -> None:
        """Let the stream that computes wait for a copy that it is about to use."""
        current = self._cuda.current_stream(self._device)
        current.wait_event(come)
        flat.record_stream(current)


class Copies:
    """What torch copies; host memory is pinned, or a copy would wait for the device."""

    def to_host(self, flat: Any) -> Any:
        """Return a pinned copy, under way."""
        import torch

        host = torch.empty(flat.shape, dtype=flat.dtype, pin_memory=True)
        return host.copy_(flat, non_blocking=True)

    def to_device(self, host: Any, device: Any) -> Any:
        """Return a copy on the device, under way."""
        return host.to(device, non_blocking=True)
