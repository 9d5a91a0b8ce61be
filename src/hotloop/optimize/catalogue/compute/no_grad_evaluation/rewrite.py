"""Evaluation under `torch.no_grad()`, in the user's source."""

from __future__ import annotations

import libcst as cst

from hotloop.lint.infer.names import dotted
from hotloop.lint.infer.program import Program
from hotloop.lint.rules.memory.evaluation_with_gradients import check
from hotloop.optimize.catalogue.compute.no_grad_evaluation.needs_gradients import Callees
from hotloop.optimize.rewriting.outcomes import not_observed
from hotloop.source.draft import Editor
from hotloop.source.imports import module_name
from hotloop.source.outcome import Edited, Refused, Rewrite
from hotloop.source.statements import wrap


def without_graph(source: Editor) -> Rewrite:
    """Wrap each loop that runs a model in evaluation mode and differentiates nothing."""
    notes: list[str] = []
    left: dict[str, None] = {}
    callees = Callees([Program(file) for file in source.draft.files.values()])
    for path in source.draft.files:
        if _loop(source, path, callees, left) is None:
            continue
        torch = module_name(source, path, "torch")
        while (loop := _loop(source, path, callees, left)) is not None:
            notes.append(f"{path}:{source.file(path).line(loop)}: evaluates under no_grad")
            wrap(source, path, [loop], f"with {torch}.no_grad():")
    if notes:
        return Edited(tuple(notes))
    if left:
        return Refused("; ".join(left), "with torch.no_grad():")
    return not_observed("loop that evaluates with gradients", "with torch.no_grad():")


def _loop(source: Editor, path: str, callees: Callees, left: dict[str, None]) -> cst.For | cst.While | None:
    """Return the outermost loop behind `eval()` that needs no gradients, around a call that the rule names."""
    program = Program(source.file(path))
    for call in program.file.all(cst.Call):
        for hit in check(program, call):
            assert isinstance(hit.node, cst.Call)
            model = dotted(hit.node.func) or ""
            reason = "evaluates and trains in one loop"
            for loop in reversed(_loops(program, hit.node, call)):
                why = callees.reason(program, loop, model)
                if why is None:
                    return loop
                reason = why
            left[f"{path}:{program.file.line(hit.node)}: {reason}"] = None
    return None


def _loops(program: Program, run: cst.Call, switch: cst.Call) -> list[cst.For | cst.While]:
    """Return the loops of a function around a model's call, the innermost first; none that holds `eval()` itself."""
    function = program.file.enclosing(run, cst.FunctionDef)
    return [
        each
        for each in program.file.ancestors(run)
        if isinstance(each, (cst.For, cst.While))
        and function is not None
        and program.file.inside(each, function)
        and not program.file.inside(switch, each)
    ]
