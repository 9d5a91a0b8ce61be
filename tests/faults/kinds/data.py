"""Faults of the data path."""

from __future__ import annotations

import ast

from tests.faults.case import Base, Fault
from tests.faults.inject import (
    Tree,
    after_imports,
    calls_of,
    drop_methods,
    in_method,
    set_constant,
    set_keyword,
)

INPUT = frozenset({"INPUT_BOUND"})
_LOADER = ("DataLoader(", "make_loader(")
_TURNS_PER_MS = 16_000
"""Turns of an empty `for` on one core of the machine on which sizes were chosen."""
_NAMED = {
    0: frozenset({"loader-in-training-process"}),
    1: frozenset({"too-few-workers", "loader-slower-than-training"}),
}
_ALL_CORES = frozenset({"loader-slower-than-training"})
_STREAM = frozenset({"input-bound"})
"""A stream cannot be given workers without being changed."""
_LINE = frozenset({"slow-dataset-line"})
"""As right as the loader's setting, where a sample is what is slow."""


def busy(sample_ms: float) -> str:
    """Code that computes so long, in Python."""
    return f"for _ in range({int(sample_ms * _TURNS_PER_MS)}):\n    pass"


def waiting(sample_ms: float) -> str:
    """Code that waits so long, as for a disk or a network."""
    return f"time.sleep({sample_ms / 1e3})"


def inflating(megabytes: float) -> str:
    """Code that decompresses, as an image decoder does (about 3 ms a megabyte)."""
    return f"sample = zlib.decompress(_PACKED)[: {int(megabytes * 1e6)}]"


def reading(times: int) -> str:
    """Code that opens and reads a small file so often."""
    return f"for _ in range({times}):\n    with open(__file__, 'rb') as file:\n        file.read()"


_NEEDS = {
    "waiting": "import time",
    "inflating": "import zlib\n_PACKED = zlib.compress(bytes(range(256)) * 4000)",
}


def slow_sample(
    kind: str, size: float, code: str, *, workers: int = 0, at: str = "__getitem__", helper: bool = False
) -> Fault:
    """Making a sample takes long, with so many workers; the code stands in the method, or in a function it calls."""

    def inject(tree: Tree, base: Base) -> None:
        body = f"def prepare_sample():\n{_tabbed(code)}"
        in_method(tree, "prepare_sample()" if helper else code, at)
        after_imports(tree, "\n".join([_NEEDS.get(kind, ""), body if helper else ""]))
        if workers:
            set_keyword(tree, "DataLoader", "num_workers", workers)
            set_keyword(tree, "DataLoader", "persistent_workers", True)

    name = f"sample_{kind}_{size:g}_{workers}workers" + ("_helper" if helper else "")
    codes = _STREAM if at == "sample" else _NAMED.get(workers, _ALL_CORES)
    return Fault(name, codes | _LINE, inject, categories=INPUT, sites=_LOADER)


def slow_batch(batch_ms: float) -> Fault:
    """Putting a batch together takes long, in a collate function of its own."""

    def inject(tree: Tree, base: Base) -> None:
        after_imports(
            tree,
            "from torch.utils.data import default_collate\n"
            f"def put_together(samples):\n{_tabbed(busy(batch_ms))}\n    return default_collate(samples)",
        )
        for call in calls_of(tree, "DataLoader"):
            call.keywords.append(ast.keyword("collate_fn", ast.Name("put_together")))

    return Fault(f"collate_{batch_ms:g}ms", _NAMED[0], inject, categories=INPUT, sites=_LOADER)


def sample_by_sample(samples: int) -> Fault:
    """The data set no longer gives whole batches; batches are so large."""

    def inject(tree: Tree, base: Base) -> None:
        drop_methods(tree, "__getitems__")
        set_constant(tree, "BATCH", samples)

    codes = frozenset({"sample-by-sample-batches", "loader-in-training-process"})
    return Fault(f"sample_by_sample_{samples}", codes, inject, categories=INPUT, sites=_LOADER)


def restarts(samples: int, workers: int, *, config: bool = False) -> Fault:
    """Workers are started anew after so few samples; the keyword stands in the call, or in a dictionary."""

    def inject(tree: Tree, base: Base) -> None:
        set_constant(tree, "NUM_SAMPLES", samples)
        if not config:
            set_keyword(tree, "DataLoader", "num_workers", workers)
            return
        after_imports(tree, f"LOADING = dict(num_workers={workers}, prefetch_factor=2)")
        for call in calls_of(tree, "DataLoader"):
            call.keywords.append(ast.keyword(None, ast.Name("LOADING")))

    return Fault(
        f"restarts_{workers}_workers_{samples}_samples" + ("_config" if config else ""),
        frozenset({"workers-not-persistent"}),
        inject,
        categories=INPUT,
        sites=_LOADER,
    )


def _tabbed(code: str) -> str:
    return "\n".join(f"    {line}" for line in code.splitlines())
