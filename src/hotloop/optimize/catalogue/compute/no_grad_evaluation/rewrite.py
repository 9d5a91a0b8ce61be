"""Evaluation under `torch.no_grad()`, in the user's source."""

from __future__ import annotations

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.rules.memory.evaluation_with_gradients import check
from hotloop.optimize.rewriting.outcomes import not_observed
from hotloop.source.draft import Editor
from hotloop.source.imports import module_name
from hotloop.source.outcome import Edited, Rewrite
from hotloop.source.statements import wrap


def without_graph(source: Editor) -> Rewrite:
    """Wrap each loop that runs a model in evaluation mode and differentiates nothing."""
    notes: list[str] = []
    for path in source.draft.files:
        if _loop(source, path) is None:
            continue
        torch = module_name(source, path, "torch")
        while (loop := _loop(source, path)) is not None:
            notes.append(f"{path}:{source.file(path).line(loop)}: evaluates under no_grad")
            wrap(source, path, [loop], f"with {torch}.no_grad():")
    if notes:
        return Edited(tuple(notes))
    return not_observed("loop that evaluates with gradients", "with torch.no_grad():")


def _loop(source: Editor, path: str) -> cst.For | cst.While | None:
    """Return the outermost loop of the function around a call that the rule names."""
    program = Program(source.file(path))
    for call in program.file.all(cst.Call):
        for hit in check(program, call):
            function = program.file.enclosing(hit.node, cst.FunctionDef)
            loops = [
                each
                for each in program.file.ancestors(hit.node)
                if isinstance(each, (cst.For, cst.While))
                and function is not None
                and program.file.inside(each, function)
            ]
            if loops:
                return loops[-1]
    return None
