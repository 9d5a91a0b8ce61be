"""A module's call whose saved tensors are given up in the forward and computed again in the backward."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from time import perf_counter
from typing import Any

from hotloop.optimize.program.containers import tensors_in
from hotloop.optimize.recomputation.buffers import Buffers, Taken, exchanged
from hotloop.optimize.recomputation.copies import Copies, clone
from hotloop.optimize.recomputation.plain_values import NotPlain, rebuilt

MIB = 1 << 20


class RecomputedCall:
    """Calls a module under `torch.utils.checkpoint`, with the same random numbers.

    A recomputation sees the inputs and buffers that the forward saw: copies of them are kept in their place, so that it
    does not matter what the module, or the program after it, changes. What it changes itself is dropped. One whose
    inputs are seen to change is called plainly from then on: the same under a plain checkpoint would be an error.

    Args:
        module: that is called.
        own: its own call.
        copies: of tensors that other modules are given, too.
    """

    def __init__(self, module: Any, own: Callable[..., Any], copies: Copies | None = None) -> None:
        self._module = weakref.ref(module)
        self._own = own
        self._copies = copies or Copies()
        self.buffers = Buffers(module, self._copies)
        self.is_on = True
        self._counts = False
        self.reason = ""
        """Why it is not recomputed any more."""
        self.is_first = True
        """Whether it was not called yet."""
        self.num_calls = 0
        self.num_recomputed = 0
        self.saved_bytes = 0
        self.forward_s = 0.0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        import torch

        if self.reason or not self.is_on or not torch.is_grad_enabled() or torch.compiler.is_compiling():
            return self._own(*args, **kwargs)
        twice = self._twice(args, kwargs)
        if twice is None:
            return self._own(*args, **kwargs)
        from torch.utils.checkpoint import checkpoint

        self.num_calls += 1
        return checkpoint(twice, self._of_each_device(args, kwargs), use_reentrant=False)

    def measure(self, on: bool) -> None:
        """Count from now on what would have been saved, and how long the forward takes; or no more."""
        self._counts = on

    def forward(self, args: Any, kwargs: Any, taken: Taken) -> Any:
        """Run the forward."""
        with self._counted((args, kwargs)) if self._counts else nullcontext():
            output = self._own(*args, **kwargs)
        self.is_first = False
        self.buffers.compare(taken)
        return output

    def look(self, watched: Watched) -> None:
        """Give the recomputation up where something was changed that should not."""
        if watched.have_changed():
            self.reason = "its inputs or buffers are changed in place"

    def again(self, args: Any, kwargs: Any, taken: Taken) -> Any:
        """Run it once more."""
        self.num_recomputed += 1
        with exchanged(taken):
            return self._own(*args, **kwargs)

    def _twice(self, args: Any, kwargs: Any) -> _Twice | None:
        """Return what is called twice; None: it cannot be, and the reason is kept."""
        try:
            kept = rebuilt((args, kwargs), self._copies.of)
            return _Twice(self, (args, kwargs), kept, self.buffers.taken())
        except NotPlain as value:
            self.reason = f"it is given a {value}, which a second run might change"
        except Exception as error:  # the program goes on: memory is short, or a tensor cannot be copied
            self.reason = f"its inputs and buffers cannot be copied: {type(error).__name__}"
        return None

    def _of_each_device(self, args: Any, kwargs: Any) -> list[Any]:
        """Return a tensor of each device that it may draw on: checkpoint keeps the random state of those it is shown.

        In a list: of what it is given directly, it demands that nobody changes it.
        """
        module = self._module()
        own = [] if module is None else [*module.parameters(), *module.buffers()]
        return one_per_device([*own, *tensors_in((args, kwargs))])

    @contextmanager
    def _counted(self, given: Any) -> Iterator[None]:
        """Count the storages that autograd would keep for this call alone, and the seconds of the forward."""
        import torch

        module = self._module()
        own = [] if module is None else [*module.parameters(), *module.buffers()]
        kept = [*tensors_in(given), *own]
        with _storages_counted(kept) as count:
            wait = torch.cuda.synchronize if any(each.is_cuda for each in kept) else lambda: None
            wait()
            start = perf_counter()
            yield
            wait()
            self.forward_s += perf_counter() - start
        self.saved_bytes += count()


class _Twice:
    """What is called in the forward, and again in each backward.

    Args:
        call: of the module.
        given: to the forward; let go after it.
        kept: the same, copied.
        taken: copies of the buffers.
    """

    def __init__(self, call: RecomputedCall, given: Any, kept: Any, taken: Taken) -> None:
        self._call = call
        self._given = given
        self._watched = Watched([*tensors_in(given), *call.buffers.constant()])
        """Let go after the forward; that of the first step, which does what all steps do, in the backward."""
        self._kept = kept
        self._taken = taken

    def __call__(self, _: list[Any]) -> Any:
        if self._given is not None:
            return self._first()
        self._call.look(self._watched)
        self._watched = Watched(())
        # A clone is no leaf, which may not be changed in place, and leaves the copy as it is for another backward.
        args, kwargs = rebuilt(self._kept, _cloned)
        return self._call.again(args, kwargs, self._taken)

    def _first(self) -> Any:
        is_first = self._call.is_first
        args, kwargs = self._given
        self._given = None
        output = self._call.forward(args, kwargs, self._taken)
        self._call.look(self._watched)
        if not is_first:
            self._watched = Watched(())
        return output


class Watched:
    """Tensors that should stay as they are.

    Args:
        tensors: as they are now.
    """

    def __init__(self, tensors: Iterable[Any]) -> None:
        self._versions = [(each.detach(), each._version) for each in tensors if not each.is_inference()]

    def have_changed(self) -> bool:
        """Whether one of them was changed in place."""
        return any(tensor._version != version for tensor, version in self._versions)


def one_per_device(tensors: Iterable[Any]) -> list[Any]:
    """Return a tensor of each device other than the host."""
    return list({each.device: each for each in tensors if each.device.type not in {"cpu", "meta"}}.values())


def _cloned(tensor: Any) -> Any:
    from torch.nn import Parameter

    return tensor if isinstance(tensor, Parameter) or tensor.is_inference() else clone(tensor)


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
