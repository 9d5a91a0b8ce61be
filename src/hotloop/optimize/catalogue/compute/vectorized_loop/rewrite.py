"""A loop over rows, written as one call in the user's source."""

from __future__ import annotations

import ast

import libcst as cst

from hotloop.model.safety import Safety
from hotloop.optimize.catalogue.compute.vectorized_loop.pattern import ROW, Result, RowLoop, row_loops
from hotloop.optimize.rewriting.outcomes import not_observed
from hotloop.source.draft import Editor
from hotloop.source.imports import module_name
from hotloop.source.outcome import Edited, Refused, Rewrite
from hotloop.source.statements import parsed

SNIPPET = "torch.vmap(turn)(rows).sum(0)"


def vectorize(source: Editor) -> Rewrite:
    """Replace each loop; that it goes over tensors cannot be read, so only with `--unsafe`."""
    notes: list[str] = []
    left: list[str] = []
    for path in source.draft.files:
        while True:
            loops, reasons = row_loops(ast.parse(source.file(path).module.code))
            if not loops:
                left += [f"{path}:{line}: {reason}" for line, reason in reasons.items()]
                break
            notes.append(_replace(source, path, loops[0]))
    if notes:
        return Edited(tuple(notes), Safety.UNSAFE)
    if left:
        return Refused("; ".join(left), SNIPPET)
    return not_observed("loop over the rows of a tensor", SNIPPET)


def _replace(source: Editor, path: str, loop: RowLoop) -> str:
    line = loop.node.lineno
    before = source.file(path).module.code.count("\n")
    torch = module_name(source, path, "torch")
    line += source.file(path).module.code.count("\n") - before
    file = source.file(path)
    node = next(each for each in file.all(cst.For) if file.line(each) == line)
    texts = _statements(loop, torch, _function_name(file.module.code))
    news = [parsed(file, text) for text in texts]
    news[0] = news[0].with_changes(leading_lines=node.leading_lines)
    source.change(path, node, lambda _: news)
    return f"{path}:{line}: all rows in one call"


def _function_name(text: str) -> str:
    return next(name for name in ("one_row", "one_row_", "_one_row") if name not in text)


def _statements(loop: RowLoop, torch: str, name: str) -> list[str]:
    rows = [_readable(row, number) for number, row in enumerate(loop.rows)]
    over = ", ".join(ast.unparse(_first_rows(loop, each)) for each in loop.over)
    values = [_renamed(ast.unparse(each.value), loop.rows, rows) for each in loop.results]
    gives = ", ".join(values)
    if not loop.temporaries and len(values) == 1:
        call = f"{torch}.vmap(lambda {', '.join(rows)}: {gives})({over})"
        return [_taken(loop.results[0], call, loop.num, torch)]
    body = [_renamed(ast.unparse(each), loop.rows, rows) for each in loop.temporaries]
    lines = "\n".join(f"    {each}" for each in [*body, f"return {gives}"])
    function = f"def {name}({', '.join(rows)}):\n{lines}\n"
    call = f"{torch}.vmap({name})({over})"
    if len(values) == 1:
        return [function, _taken(loop.results[0], call, loop.num, torch)]
    results = [f"{name}_{number}" for number in range(len(values))]
    taken = [
        _taken(each, result, loop.num, torch) for each, result in zip(loop.results, results, strict=True)
    ]
    return [function, f"{', '.join(results)} = {call}", *taken]


def _taken(result: Result, value: str, num: ast.expr | None, torch: str) -> str:
    if result.kind == "append":
        # Tensors of their own, as the loop gives them: those of `unbind` may not be changed in place.
        return f"{result.name}.extend({torch}.unbind_copy({value}))"
    if result.kind == "place":
        return (
            f"{result.name}[:{ast.unparse(num)}] = {value}"
            if num is not None
            else f"{result.name}[:] = {value}"
        )
    if isinstance(result.statement, ast.AugAssign):
        return f"{result.name} += {value}.sum(0)"
    return f"{result.name} = {result.name} + {value}.sum(0)"


def _first_rows(loop: RowLoop, over: ast.expr) -> ast.expr:
    """Return the tensor, or as many of its rows as are counted, where that is not said by its own length."""
    if loop.num is None or ast.unparse(loop.num) in {
        form.format(ast.unparse(over)) for form in ("len({})", "{}.size(0)", "{}.shape[0]")
    }:
        return over
    return ast.Subscript(over, ast.Slice(None, loop.num), ast.Load())


def _readable(row: str, number: int) -> str:
    return f"row_{number}" if row == ROW.format(number) else row


def _renamed(text: str, old: list[str], new: list[str]) -> str:
    for before, after in zip(old, new, strict=True):
        text = text.replace(before, after) if before != after else text
    return text
