"""A module's call whose saved tensors are given up in the forward and computed again in the backward."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from time import perf_counter
from typing import Any

from hotloop.optimize.program.containers import map_tensors, tensors_in

MIB = 1 << 20


class RecomputedCall:
    """Calls a module under `torch.utils.checkpoint`, with the same random numbers; buffers are left as they are.

    A recomputation must see the inputs and buffers that the forward saw. In the first call copies are held while the
    module runs: a module that has changed them is recomputed from the copies, and never again after that.

    Args:
        module: that is called.
        own: its own call.
    """

    def __init__(self, module: Any, own: Callable[..., Any]) -> None:
        self._module = weakref.ref(module)
        self._own = own
        self.is_on = True
        self._counts = False
        self.reason = ""
        """Why it is not recomputed any more."""
        self._checked = False
        self.num_calls = 0
        self.num_recomputed = 0
        self.saved_bytes = 0
        self.forward_s = 0.0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        import torch

        if self.reason or not self.is_on or not torch.is_grad_enabled() or torch.compiler.is_compiling():
            return self._own(*args, **kwargs)
        from torch.utils.checkpoint import checkpoint

        self.num_calls += 1
        # Keywords travel as one argument: checkpoint has keywords of its own.
        return checkpoint(_Twice(self), args, kwargs, use_reentrant=False)

    def measure(self, on: bool) -> None:
        """Count from now on what would have been saved, and how long the forward takes; or no more."""
        self._counts = on

    def forward(self, args: Any, kwargs: Any, copies: list[tuple[Any, Any]]) -> Any:
        """Run the forward; fill in copies of what it has changed: each with its original."""
        watched = [*tensors_in((args, kwargs)), *self._constant_buffers()]
        before = [(each, each._version) for each in watched if not each.is_inference()]
        held = [] if self._checked else [_copy(each) for each, _ in before]
        with self._counted(before) if self._counts else nullcontext():
            output = self._own(*args, **kwargs)
        self._checked = True
        if any(each._version != version for each, version in before):
            self.reason = "it changes its inputs or buffers in place"
            copies += [(each, copy) for (each, _), copy in zip(before, held, strict=False)]
        return output

    def again(self, args: Any, kwargs: Any, copies: list[tuple[Any, Any]]) -> Any:
        """Run it once more: buffers that it updates are exchanged for copies, which are dropped afterwards."""
        self.num_recomputed += 1
        # A clone is no leaf, which may not be changed in place, and leaves the copy as it is for a second backward.
        by_id = {id(each): copy.clone() for each, copy in copies}
        if by_id:
            args, kwargs = (map_tensors(given, lambda t: by_id.get(id(t), t)) for given in (args, kwargs))
        with self._buffers_apart(by_id):
            return self._own(*args, **kwargs)

    @contextmanager
    def _buffers_apart(self, by_id: dict[int, Any]) -> Iterator[None]:
        exchanged: list[tuple[Any, str, Any]] = []
        for part in self._parts():
            for name, buffer in part._buffers.items():
                if buffer is not None and (id(buffer) in by_id or _keeps_statistics(part)):
                    exchanged.append((part, name, buffer))
        try:
            for part, name, buffer in exchanged:
                part._buffers[name] = by_id.get(id(buffer), buffer).clone()
            yield
        finally:
            for part, name, buffer in exchanged:
                part._buffers[name] = buffer

    def _parts(self) -> Iterator[Any]:
        module = self._module()
        return iter(()) if module is None else module.modules()

    def _constant_buffers(self) -> Iterator[Any]:
        """Yield the buffers that are not expected to change; running statistics are."""
        for part in self._parts():
            if not _keeps_statistics(part):
                yield from (buffer for buffer in part._buffers.values() if buffer is not None)

    @contextmanager
    def _counted(self, given: list[tuple[Any, int]]) -> Iterator[None]:
        """Count the storages that autograd would keep for this call alone, and the seconds of the forward."""
        import torch

        module = self._module()
        kept = [each for each, _ in given] + list(module.parameters() if module is not None else ())
        with _storages_counted(kept) as count:
            wait = torch.cuda.synchronize if any(each.is_cuda for each in kept) else lambda: None
            wait()
            start = perf_counter()
            yield
            wait()
            self.forward_s += perf_counter() - start
        self.saved_bytes += count()


class _Twice:
    """What is called in the forward, and again in the backward."""

    def __init__(self, call: RecomputedCall) -> None:
        self._call = call
        self._ran = False
        self._copies: list[tuple[Any, Any]] = []

    def __call__(self, args: Any, kwargs: Any) -> Any:
        if self._ran:
            return self._call.again(args, kwargs, self._copies)
        self._ran = True
        return self._call.forward(args, kwargs, self._copies)


def _keeps_statistics(part: Any) -> bool:
    from torch.nn.modules.batchnorm import _NormBase

    return isinstance(part, _NormBase) and part.track_running_stats


def _copy(tensor: Any) -> Any:
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def _storages_counted(known: list[Any]) -> AbstractContextManager[Callable[[], int]]:
    """Return a context in which storages that autograd packs are counted once, those that are known left out."""
    from torch.autograd.graph import saved_tensors_hooks

    @contextmanager
    def counting() -> Iterator[Callable[[], int]]:
        import torch

        seen: dict[int, Any] = {}
        total = 0

        def is_new(tensor: Any) -> bool:
            storage = tensor.untyped_storage()
            was = seen.get(storage._cdata)
            if was is not None and was() is not None:
                return False
            seen[storage._cdata] = weakref.ref(storage)
            return True

        for each in known:
            is_new(each)
        top = torch._C._autograd._top_saved_tensors_default_hooks(False)

        def pack(tensor: Any) -> Any:
            nonlocal total
            if is_new(tensor):
                total += tensor.untyped_storage().nbytes()
            return top[0](tensor)

        if top is None:
            yield lambda: 0
            return
        with saved_tensors_hooks(pack, top[1]):
            yield lambda: total

    return counting()
