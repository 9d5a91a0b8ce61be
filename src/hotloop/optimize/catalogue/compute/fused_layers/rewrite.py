"""Normalizations that are written out, replaced in the user's source."""

from __future__ import annotations

import libcst as cst

from hotloop.optimize.catalogue.compute.fused_layers.pattern import WrittenNorm, written_norms
from hotloop.optimize.rewriting.functional import functional
from hotloop.optimize.rewriting.outcomes import none_of_its_own
from hotloop.source.draft import Editor
from hotloop.source.outcome import CannotEdit, Edited, Refused, Rewrite
from hotloop.source.source_file import SourceFile


def replace_norms(source: Editor) -> Rewrite:
    """Replace them in every file of the program."""
    notes: list[str] = []
    reasons: list[str] = []
    for path in source.draft.files:
        left: set[str] = set()
        while todo := [each for each in _open(source, path) if each.function not in left]:
            left.add(todo[0].function)
            try:
                notes.append(_replace(source, path, todo[0].function))
            except CannotEdit as reason:
                reasons.append(str(reason))
    if notes:
        return Edited(tuple(notes))
    if reasons:
        return Refused("; ".join(reasons))
    return none_of_its_own(
        "a normalization", "F.layer_norm(x, x.shape[-1:], self.weight, self.bias, self.eps)"
    )


def _open(source: Editor, path: str) -> list[WrittenNorm]:
    return written_norms(source.file(path).module.code)


def _replace(source: Editor, path: str, function: str) -> str:
    """Replace one, and return what was done.

    Raises:
        CannotEdit: it has comments between its statements, or it cannot be told from another.
    """
    _method(source.file(path), path, _named(source, path, function))
    name = functional(source, path)  # may bring an import, which moves what follows
    norm = _named(source, path, function)
    method = _method(source.file(path), path, norm)
    body = method.body
    assert isinstance(body, cst.IndentedBlock)
    last = body.body[-1]
    assert isinstance(last, cst.SimpleStatementLine)
    call = cst.parse_expression(f"{name}.{norm.name}({norm.arguments})")
    returned = last.with_changes(body=[cst.Return(call)], leading_lines=())
    kept = [line for line in body.body if _is_text(line)]
    source.change(path, body, lambda _: body.with_changes(body=[*kept, returned]))
    return f"{path}:{norm.line}: {function} calls {norm.name}"


def _named(source: Editor, path: str, function: str) -> WrittenNorm:
    return next(each for each in _open(source, path) if each.function == function)


def _method(file: SourceFile, path: str, norm: WrittenNorm) -> cst.FunctionDef:
    here = [node for node in file.all(cst.FunctionDef) if _line(file, node) == norm.line]
    if len(here) != 1 or not isinstance(here[0].body, cst.IndentedBlock):
        raise CannotEdit(f"{path}:{norm.line}: {norm.function} cannot be told from the rest of its line")
    if any("#" in file.module.code_for_node(each) for each in here[0].body.body):
        raise CannotEdit(f"{path}:{norm.line}: {norm.function} has comments in it")
    if norm.unsure:
        raise CannotEdit(f"{path}:{norm.line}: {norm.function}: {norm.unsure}")
    return here[0]


def _is_text(line: cst.BaseStatement) -> bool:
    return (
        isinstance(line, cst.SimpleStatementLine)
        and len(line.body) == 1
        and isinstance(line.body[0], cst.Expr)
        and isinstance(line.body[0].value, (cst.SimpleString, cst.ConcatenatedString))
    )


def _line(file: SourceFile, node: cst.FunctionDef) -> int:
    return file.line(node.name)
