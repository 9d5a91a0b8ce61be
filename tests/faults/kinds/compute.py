"""Faults of what the model and the optimizer compute."""

from __future__ import annotations

from tests.faults.case import Base, Fault
from tests.faults.inject import Tree, after_imports, set_constant, set_keyword

_OPTIMIZERS = ("AdamW", "Adam", "SGD")


def unfused(batch: int | None = None, *, foreach: bool | None = None) -> Fault:
    """The optimizer's fused implementation is not used, and the batch leaves it a share of the step."""

    def inject(tree: Tree, base: Base) -> None:
        changed = False
        for name in _OPTIMIZERS:
            try:
                set_keyword(tree, name, "fused", None)
            except ValueError:
                continue
            changed = True
            if foreach is not None:
                set_keyword(tree, name, "foreach", foreach)
        if not changed:
            raise ValueError("the program has no such optimizer")
        if batch is not None:
            set_constant(tree, "BATCH", batch)

    how = {None: "", True: "_foreach", False: "_one_by_one"}[foreach]
    size = f"_batch{batch}" if batch is not None else ""
    return Fault(f"unfused{size}{how}", frozenset({"unfused-optimizer"}), inject, sites=_OPTIMIZERS)


def tiny_batch(batch: int) -> Fault:
    """So few samples a step."""
    return Fault(
        f"batch_of_{batch}",
        frozenset({"batch-too-small"}),
        lambda tree, base: set_constant(tree, "BATCH", batch),
    )


def double_precision() -> Fault:
    """Everything is computed with 64 bits."""
    return Fault(
        "double_precision",
        frozenset({"double-precision"}),
        lambda tree, base: after_imports(tree, "import torch\ntorch.set_default_dtype(torch.float64)"),
    )
