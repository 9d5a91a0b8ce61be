"""Names that programs look up, compare and inspect."""

from __future__ import annotations

import inspect
import sys

from program import Found
from torch import nn


def read() -> Found:
    import torch.distributed

    names = (
        "torch.save", "torch.load", "torch.compile", "torch.jit.script", "torch.jit.trace", "torch.jit.save",
        "torch.autograd.backward", "torch.autograd.grad", "torch.Tensor.backward", "torch.Tensor.to",
        "torch.nn.Module.__call__", "torch.nn.Module.eval", "torch.optim.Optimizer.__init__", "torch.optim.SGD",
        "torch.optim.AdamW", "torch.utils.data.DataLoader", "torch.utils.data.DataLoader.__init__",
        "torch.utils.data.DataLoader.__iter__", "torch.distributed.all_reduce", "torch.distributed.barrier",
        "torch.nn.parallel.DistributedDataParallel", "logging.Handler.handle",
    )  # fmt: skip
    told = []
    for name in names:
        module, _, rest = name.partition(".")
        thing = sys.modules[module]
        for part in rest.split("."):
            thing = getattr(thing, part)
        if name == "torch.Tensor.to":
            told.append([name, type(thing).__name__])
            continue
        told.append(
            [name, type(thing).__name__, str(inspect.signature(thing)), thing.__module__, thing.__qualname__]
        )
        told[-1].append(str(inspect.getfullargspec(thing)) if not isinstance(thing, type) else "")
    tables = [
        name in torch.jit._builtins._get_builtin_table()
        for name in (id(torch.autograd.grad), id(torch.zeros))
    ]
    same = [
        nn.Module.__call__ is nn.Module._wrapped_call_impl,
        torch.fx._symbolic_trace._orig_module_call is nn.Module.__call__,
    ]
    return [
        [row for row in told if "Optimizer" not in row[0] and "DataLoader" not in row[0]],
        tables,
        same,
    ], told
