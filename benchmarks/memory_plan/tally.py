"""The peak of a program's tensors on the CPU, counted while it runs: `python -m benchmarks.memory_plan.tally SCRIPT`.

Counted is what would be on a device: parameters and buffers of modules that are called, batches that loaders give, and
everything made from the first forward on, outside of loaders. Optimizers are foreach, and dropout keeps a mask of
bytes, as on a GPU. Written apart from hotloop, which it is to check. Prints the peak in bytes as its last line.
"""

from __future__ import annotations

import atexit
import runpy
import sys
import weakref
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.nn.modules import module as modules
from torch.optim import optimizer
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import dataloader


class Tally(TorchDispatchMode):  # type: ignore[misc]
    """Counts bytes of live storages."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = False
        self.now = self.peak = 0
        self._seen: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operator, and count what it made."""
        out = func(*args, **(kwargs or {}))
        if self.begun:
            for each in pytree.tree_leaves(out):
                self.count(each)
        return out

    def count(self, tensor: Any) -> None:
        """Count a tensor's storage once, for as long as it lives."""
        if not isinstance(tensor, torch.Tensor) or tensor.layout is not torch.strided:
            return
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._seen:
            return
        self._seen.add(key)
        size = storage.nbytes()
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._gone, key, size).atexit = False

    def _gone(self, key: int, size: int) -> None:
        self._seen.discard(key)
        self.now -= size

    def module(self, module: Any, _: Any) -> None:
        """Count the parameters of a module that is called."""
        self.begun = True
        for each in (*module.parameters(recurse=False), *module.buffers(recurse=False)):
            self.count(each)


def main() -> None:
    """Run the script of the command line under the tally."""
    tally = Tally()
    modules.register_module_forward_pre_hook(tally.module)
    iterator: Any = dataloader._BaseDataLoaderIter
    following = iterator.__next__

    def count_batches(loader: Any) -> Any:
        begun, tally.begun = tally.begun, False
        try:
            batch = following(loader)
        finally:
            tally.begun = begun
        for each in pytree.tree_leaves(dict(batch) if hasattr(batch, "keys") else batch):
            tally.count(each)
        return batch

    iterator.__next__ = count_batches
    named: Any = optimizer
    named._get_foreach_kernels_supported_devices = lambda: ["cpu", "cuda"]
    functional: Any = torch.nn.functional
    dropout = functional.dropout

    def masked(x: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        return (
            torch.native_dropout(x, p, True)[0]
            if training and 0 < p < 1
            else dropout(x, p, training, inplace)
        )

    functional.dropout = masked
    atexit.register(lambda: print(f"\npeak of tensors: {tally.peak}", flush=True))
    torch.autograd.set_multithreading_enabled(False)
    sys.argv = sys.argv[1:]
    with tally:
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
