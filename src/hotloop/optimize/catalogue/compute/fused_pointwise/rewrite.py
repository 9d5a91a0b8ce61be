"""Activation functions that are written out, replaced in the user's source."""

from __future__ import annotations

import ast

import libcst as cst

from hotloop.optimize.rewriting.functional import functional
from hotloop.optimize.rewriting.outcomes import none_of_its_own
from hotloop.patterns.activations.pattern import WrittenOut, written_out
from hotloop.source.draft import Editor
from hotloop.source.outcome import CannotEdit, Edited, Refused, Rewrite
from hotloop.source.source_file import SourceFile


def replace_pointwise(source: Editor) -> Rewrite:
    """Replace them in every file of the program."""
    notes: list[str] = []
    reasons: list[str] = []
    for path in source.draft.files:
        left = 0
        while len(written_out(source.file(path).module.code)) > left:
            try:
                notes.append(_replace(source, path, left))
            except CannotEdit as reason:
                reasons.append(str(reason))
                left += 1
    if notes:
        return Edited(tuple(notes))
    if reasons:
        return Refused("; ".join(reasons))
    return none_of_its_own("an activation function", 'F.gelu(x, approximate="tanh")')


def _replace(source: Editor, path: str, number: int) -> str:
    """Replace one, and return what was done.

    Raises:
        CannotEdit: it cannot be told from the rest of its line, or it has comments in it.
    """
    _node(source.file(path), path, written_out(source.file(path).module.code)[number])
    name = functional(source, path)  # may bring an import, which moves what follows
    file = source.file(path)
    found = written_out(file.module.code)[number]
    node = _node(file, path, found)
    call = cst.parse_expression(f"{name}.{found.formula.function.name}({found.arguments})")
    source.change(path, node, lambda _: _in_place_of(node, call))
    return f"{path}:{found.line}: {found.function} calls {found.formula.function.name}"


def _node(file: SourceFile, path: str, found: WrittenOut) -> cst.BaseExpression:
    written = ast.get_source_segment(file.module.code, found.expression) or ""
    if "#" in written:
        raise CannotEdit(f"{path}:{found.line}: the formula has comments in it")
    here = [
        node
        for node in [*file.all(cst.BinaryOperation), *file.all(cst.Call)]
        if file.line(node) in (found.line, found.line - 1)
        and _same(file.module.code_for_node(node.with_changes(lpar=(), rpar=())), written)
    ]
    if len(here) != 1:
        raise CannotEdit(f"{path}:{found.line}: the formula cannot be told from the rest of its line")
    return here[0]


def _same(one: str, other: str) -> bool:
    """Lines within parentheses may be indented otherwise."""
    return one.split() == other.split()


def _in_place_of(node: cst.BaseExpression, call: cst.BaseExpression) -> cst.BaseExpression:
    """A formula over several lines stands in parentheses, which a call does not need."""
    if all(not isinstance(each.whitespace_after, cst.ParenthesizedWhitespace) for each in node.lpar):
        return call.with_changes(lpar=node.lpar, rpar=node.rpar)
    return call
