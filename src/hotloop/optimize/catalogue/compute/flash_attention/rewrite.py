"""Attention that is written out, replaced in the user's source."""

from __future__ import annotations

import ast

import libcst as cst

from hotloop.optimize.rewriting.functional import functional
from hotloop.optimize.rewriting.outcomes import not_observed
from hotloop.patterns.attention.pattern import Attention, attentions
from hotloop.patterns.attention.terms import text_of
from hotloop.source.draft import Editor
from hotloop.source.outcome import CannotEdit, Edited, Refused, Rewrite
from hotloop.source.statements import parsed

LINE = 100
"""Columns; what would be longer has an argument a line."""
_CALL = "scaled_dot_product_attention"


def replace_attention(source: Editor) -> Rewrite:
    """Replace it in every file of the program."""
    notes: list[str] = []
    reasons: list[str] = []
    for path in source.draft.files:
        while True:
            found = attentions(source.file(path).module.code)
            usable = [each for each in found if _can_be_written(each)]
            if not usable:
                reasons += [f"{path}:{each.line}: {each.refused or each.unsure}" for each in found]
                break
            notes.append(_replace(source, path, usable[0]))
    if notes:
        return Edited(tuple(notes))
    if reasons:
        return Refused("; ".join(reasons))
    return not_observed("attention that is written out", f"F.{_CALL}(q, k, v)")


def _can_be_written(found: Attention) -> bool:
    """Whether the source shows that the call is right: nothing is compared in the patched program."""
    return not found.refused and not found.unsure


def _replace(source: Editor, path: str, found: Attention) -> str:
    name = functional(source, path)
    found = next(each for each in attentions(source.file(path).module.code) if _can_be_written(each))
    text = source.file(path).module.code
    call = f"{name}.{_CALL}({found.arguments}){found.turn}"
    written = ast.get_source_segment(text, found.statement)
    product = ast.get_source_segment(text, found.product)
    if written is None or product is None or written.count(product) != 1:
        raise CannotEdit(f"{path}:{found.line}: the product cannot be told from the rest of its statement")
    lines = [_statement(source, path, each) for each in [*found.gone, found.statement]]
    note = f"{path}:{found.line}: {found.function} calls {_CALL}"
    comments = [each for line in lines[1:] for each in line.leading_lines if each.comment is not None]
    for line in lines[:-1]:
        source.change(path, line, lambda _: None)
    alone = written.replace(f"({product})", product, 1).replace(product, call)
    if len(alone) + found.statement.col_offset > LINE:
        alone = alone.replace(call, _broken(call, found))
    new, last = parsed(source.file(path), alone), lines[-1]
    assert isinstance(new, cst.SimpleStatementLine)
    assert isinstance(last, cst.SimpleStatementLine)
    new = new.with_changes(
        leading_lines=[*lines[0].leading_lines, *comments], trailing_whitespace=last.trailing_whitespace
    )
    source.change(path, last, lambda _: new)
    return note


def _broken(call: str, found: Attention) -> str:
    """Return the call with an argument a line; the three matrices share one."""
    head = call[: call.index(found.arguments)]
    node = ast.parse(f"f({found.arguments})", mode="eval").body
    assert isinstance(node, ast.Call)
    words = [f"{word.arg}={text_of(word.value)}" for word in node.keywords]
    rows = [", ".join(ast.unparse(arg) for arg in node.args), *words]
    return head + "".join(f"\n    {row}," for row in rows) + f"\n){found.turn}"


def _statement(source: Editor, path: str, statement: ast.stmt) -> cst.SimpleStatementLine | cst.If:
    """Return the statement of the tree that is edited.

    Raises:
        CannotEdit: it shares its line with another.
    """
    file = source.file(path)
    here = [
        line
        for line in [*file.all(cst.SimpleStatementLine), *file.all(cst.If)]
        if file.line(line) == statement.lineno
    ]
    kind = cst.If if isinstance(statement, ast.If) else cst.SimpleStatementLine
    lines = [each for each in here if isinstance(each, kind)]
    if len(lines) != 1 or any(
        isinstance(each, cst.SimpleStatementLine) and len(each.body) > 1 for each in lines
    ):
        raise CannotEdit(f"{path}:{statement.lineno}: the statement shares its line with others")
    return lines[0]
