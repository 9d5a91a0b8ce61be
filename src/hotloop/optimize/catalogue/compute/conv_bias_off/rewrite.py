"""`bias=False` for convolutions that batch norm follows, in the user's source."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from hotloop.lint.check.engine import Found, examine
from hotloop.lint.rules.compute.conv_bias_before_batch_norm import rule
from hotloop.model.safety import Safety
from hotloop.optimize.rewriting.outcomes import not_observed
from hotloop.source.draft import Editor
from hotloop.source.outcome import Edited, Rewrite

CHECKPOINTS = "checkpoints saved before have a bias that the model no longer has"


def drop_biases(source: Editor) -> Rewrite:
    """Edit where convolution and norm stand one after the other in the source."""
    notes: list[str] = []
    for path in source.draft.files:
        while found := _found(source, path):
            for edit in found[0].edits:
                source.change(path, edit.old, _as(edit.new))
            notes.append(f"{path}:{found[0].finding.line}: bias=False in front of batch norm; {CHECKPOINTS}")
    if notes:
        return Edited(tuple(dict.fromkeys(notes)), Safety.UNSAFE)
    return not_observed("convolution directly followed by batch norm in the source", "bias=False")


def _as(new: cst.CSTNode | None) -> Callable[[cst.CSTNode], cst.CSTNode | None]:
    return lambda _: new


def _found(source: Editor, path: str) -> list[Found]:
    return [found for found in examine(source.file(path), [rule]) if found.edits]
