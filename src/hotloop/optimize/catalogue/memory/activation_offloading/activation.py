"""The activation of activation_offloading: chooses which saved tensors go to the host."""

from __future__ import annotations

import weakref
from contextlib import AbstractContextManager
from typing import Any

from hotloop.optimize.catalogue.memory.activation_offloading.link import Copies, Link
from hotloop.optimize.catalogue.memory.activation_offloading.offloaded import Offloaded, View
from hotloop.optimize.program.containers import tensors_in
from hotloop.probe.activation.activation import Activation

MIN_BYTES = 1 << 20
"""torch's allocator keeps what is not larger in a pool of its own; a copy of it is all latency."""
MIB = 1 << 20


class OffloadedActivations(Activation):
    """Keeps saved tensors of each training forward in host memory, the first ones, which wait longest.

    Args:
        limit_bytes: of each forward: what the link can carry.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._links: dict[Any, Link] = {}
        self._known: set[int] = set()
        """Storages of parameters, buffers and inputs: somebody else holds them anyway."""
        self._seen: dict[int, tuple[Any, int, Any]] = {}
        self._left = 0
        self._latest: Any = lambda: None
        self._num_forwards = 0
        self._num_back = 0
        self._moved_bytes = 0

    def on_forward_inputs(
        self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Any]:
        """Begin with all of what the link can carry."""
        held = [*module.parameters(), *module.buffers(), *tensors_in((args, kwargs))]
        self._known = {each.untyped_storage()._cdata for each in held if not each.is_sparse}
        self._seen.clear()
        self._left = self._limit_bytes
        self._latest = lambda: None
        self._num_forwards += 1
        return args, kwargs

    def forward_context(self, module: Any) -> AbstractContextManager[Any]:
        """Return torch's hooks on what autograd saves."""
        from torch.autograd.graph import saved_tensors_hooks

        context: AbstractContextManager[Any] = saved_tensors_hooks(self.pack, self.unpack)
        return context

    def pack(self, tensor: Any) -> Any:
        """Return what autograd keeps: the tensor, or its place in a storage on its way to the host."""
        import torch

        if not self.may_leave(tensor):
            return tensor
        storage = tensor.untyped_storage()
        found = self._seen.get(storage._cdata)
        if found is not None and found[0]() is storage and found[1] == tensor._version:
            offloaded = found[2]()
            if offloaded is not None:
                return View(offloaded, tensor)
        if storage.nbytes() > self._left:
            return tensor
        self._left -= storage.nbytes()
        self._moved_bytes += storage.nbytes()
        flat = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage)
        offloaded = Offloaded(self.link(tensor.device), flat, self._latest())
        self._latest = weakref.ref(offloaded)
        self._seen[storage._cdata] = (weakref.ref(storage), tensor._version, self._latest)
        return View(offloaded, tensor)

    def unpack(self, kept: Any) -> Any:
        """Return the tensor."""
        if not isinstance(kept, View):
            return kept
        self._num_back += 1
        return kept.get()

    def may_leave(self, tensor: Any) -> bool:
        """Whether a saved tensor is an activation on the device, large enough for a copy, and nothing but its bytes."""
        import torch

        if (
            type(tensor) is not torch.Tensor
            or tensor.layout is not torch.strided
            or tensor.is_quantized
            or tensor.is_conj()
            or tensor.is_neg()
            or torch.compiler.is_compiling()
        ):
            return False
        storage = tensor.untyped_storage()
        large = storage.nbytes() >= MIN_BYTES and storage.nbytes() % tensor.element_size() == 0
        return self.is_on_device(tensor) and large and storage._cdata not in self._known

    def is_on_device(self, tensor: Any) -> bool:
        """Whether a tensor is on a device that has a link."""
        return bool(tensor.is_cuda)

    def link(self, device: Any) -> Link:
        """Return the link of a device."""
        if device not in self._links:
            import torch

            self._links[device] = Link(torch.cuda, device, Copies())
        return self._links[device]

    def effect(self) -> tuple[bool, str]:
        """Return whether tensors went out and came back."""
        if not self._moved_bytes:
            return False, f"no saved tensor of {MIN_BYTES // MIB} MiB or more was on a device"
        size = self._moved_bytes / max(1, self._num_forwards) / MIB
        return (
            self._num_back > 0,
            f"{size:.1f} MiB of each forward in host memory; {self._num_back} came back",
        )
