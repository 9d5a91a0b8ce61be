"""Copies of tensors, for a second run: a program may change what it has given to a module before the backward."""

from __future__ import annotations

import weakref
from typing import Any


class Copies:
    """Makes copies; masks and the like, which many modules are given, are copied once for all of them."""

    def __init__(self) -> None:
        self._known: Any = None
        """Tensors, weakly, with the version that was copied and its copy, weakly."""

    def of(self, tensor: Any) -> Any:
        """Return a leaf with the values of now; parameters, and what torch lets nobody change, stay as they are."""
        from torch.nn import Parameter

        if isinstance(tensor, Parameter) or tensor.is_inference():
            return tensor
        return detached_copy(tensor) if tensor.requires_grad else self._shared(tensor)

    def _shared(self, tensor: Any) -> Any:
        from torch.utils.weak import WeakIdKeyDictionary

        if self._known is None:
            self._known = WeakIdKeyDictionary()
        version, known = self._known.get(tensor, (None, None))
        copied = known() if version == tensor._version else None
        if copied is None:
            copied = detached_copy(tensor)
            self._known[tensor] = tensor._version, weakref.ref(copied)
        return copied


def detached_copy(tensor: Any) -> Any:
    """Return a leaf of the same values, that requires a gradient where the tensor does."""
    return clone(tensor.detach()).requires_grad_(tensor.requires_grad)


def clone(tensor: Any) -> Any:
    """Return a clone; what is expanded is expanded again, not written out."""
    import torch

    if type(tensor) is not torch.Tensor or tensor.layout is not torch.strided:
        return tensor.clone()
    expanded = [dim for dim in range(tensor.dim()) if tensor.stride(dim) == 0 and tensor.shape[dim] > 1]
    whole = tensor
    for dim in expanded:
        whole = whole.narrow(dim, 0, 1)
    return whole.clone().expand(tensor.shape) if expanded else whole.clone()
