"""Tensors made on their device, in the user's source."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from hotloop.lint.check.engine import Found, examine
from hotloop.lint.rules.host import repeated_transfer, tensor_created_on_cpu_then_moved
from hotloop.model.safety import Safety
from hotloop.optimize.rewriting.outcomes import not_observed
from hotloop.source.draft import Editor
from hotloop.source.outcome import Edited, Refused, Rewrite

SNIPPET = "torch.zeros(n, device=device)"


def make_on_device(source: Editor) -> Rewrite:
    """Move the device into the factory's call; where random numbers are drawn, it is left and said."""
    notes: list[str] = []
    left: list[str] = []
    for path in source.draft.files:
        while found := next(
            (one for one in _made(source, path) if one.edits and one.safety is not None and one.safety <= 0),
            None,
        ):
            for edit in found.edits:
                source.change(path, edit.old, _as(edit.new))
            notes.append(f"{path}:{found.finding.line}: made on the device")
        left += [f"{path}:{one.finding.line}: random numbers would be others" for one in _made(source, path)]
        again = examine(source.file(path), [repeated_transfer.rule])
        left += [f"{path}:{one.finding.line}: {one.finding.evidence}" for one in again]
    if notes:
        return Edited(tuple(notes), Safety.SAFE)
    if left:
        return Refused("; ".join(left), SNIPPET)
    return not_observed("tensor that is made on the host and moved in each step", SNIPPET)


def _made(source: Editor, path: str) -> list[Found]:
    return examine(source.file(path), [tensor_created_on_cpu_then_moved.rule])


def _as(new: cst.CSTNode | None) -> Callable[[cst.CSTNode], cst.CSTNode | None]:
    return lambda _: new
