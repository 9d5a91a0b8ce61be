"""Faults of the run as a whole."""

from __future__ import annotations

from tests.faults import forms
from tests.faults.case import Base, Fault
from tests.faults.forms import Form, inline
from tests.faults.inject import Tree, after_imports


def evaluation(every: int, forwards: int, form: Form = inline, context: str = "no_grad") -> Fault:
    """So many forwards without gradients every so many steps."""
    codes = {"frequent-evaluation", "evaluation-in-step"} if every < 3 else {"frequent-evaluation"}

    def inject(tree: Tree, base: Base) -> None:
        run = f"with torch.{context}():\n    for _ in range({forwards}):\n        MODEL(*INPUTS)"
        forms.after_step(tree, base, forms.every(tree, every, run), form)
        after_imports(tree, "import torch")

    return Fault(
        f"evaluates_{forwards}_every_{every}_{form.__name__}",
        frozenset(codes),
        inject,
        categories=frozenset({"RESIDUAL_HEAVY", "COMPUTE_BOUND"}),
    )


def checkpoint(every: int, copies: int, form: Form = inline) -> Fault:
    """A checkpoint every so many steps, with so many copies of the parameters in it."""

    def inject(tree: Tree, base: Base) -> None:
        save = (
            "torch.save([{key: value.clone() for key, value in MODEL.state_dict().items()} "
            f"for _ in range({copies})], 'last.pt')"
        )
        forms.after_step(tree, base, forms.every(tree, every, save), form)
        after_imports(tree, "import torch")

    return Fault(
        f"saves_{copies}_every_{every}_{form.__name__}",
        frozenset({"frequent-checkpoints"}),
        inject,
        categories=frozenset({"RESIDUAL_HEAVY"}),
    )
