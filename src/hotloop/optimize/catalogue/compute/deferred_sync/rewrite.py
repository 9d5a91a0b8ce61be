"""`total += loss.item()` in the user's source: added up on the device, and read when the loop is through."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from hotloop.lint.infer.kinds import Kind
from hotloop.lint.infer.program import Program
from hotloop.optimize.catalogue.compute.deferred_sync.deferrable_statements import PLAIN, fetch_of
from hotloop.optimize.catalogue.compute.deferred_sync.name_uses import mentions, overlaps
from hotloop.optimize.catalogue.compute.deferred_sync.pattern import Plan
from hotloop.optimize.catalogue.compute.deferred_sync.source_edit import plans_of
from hotloop.optimize.rewriting.outcomes import not_observed
from hotloop.source.draft import Editor
from hotloop.source.imports import module_name
from hotloop.source.outcome import CannotEdit, Edited, Refused, Rewrite
from hotloop.source.statements import insert_after, parsed

KEPT = ".detach().double()"
"""Python adds up in double precision; the device then does, too."""


@dataclass(frozen=True)
class _Sum:
    """`name += tensor.item()`, which is all that a loop does with the name."""

    name: str
    tensor: str
    line: int


def add_up_on_device(source: Editor) -> Rewrite:
    """Change sums of tensors' floating-point values that nothing reads before their loop ends; others are refused."""
    notes: list[str] = []
    left: list[str] = []
    for path in source.draft.files:
        while True:
            tree = ast.parse(source.file(path).module.code)
            plans = plans_of(tree)
            sums = [each for plan in plans for each in _sums(tree, plan)]
            found = next((each for each in sums if _is_of_tensors(source, path, each)), None)
            if found is None:
                why = {each.line: f" ({each.tensor} may be no tensor)" for each in sums}
                left += [f"{path}:{line}{why.get(line, '')}" for plan in plans for line in _asking(plan)]
                break
            notes.append(_change(source, path, found))
    if notes:
        return Edited(tuple(notes))
    if left:
        return Refused(
            f"only sums of a loop have a form on the device: {', '.join(left)}", "total += loss.detach()"
        )
    return not_observed("sum of values that a loop asks for", "total += loss.detach()")


def _asking(plan: Plan) -> list[int]:
    return [*(each.statement.lineno for each in plan.waiting if each.kinds.strip(PLAIN)), *plan.kept]


def _sums(tree: ast.Module, plan: Plan) -> Iterator[_Sum]:
    for each in plan.waiting:
        statement = each.statement
        if not isinstance(statement, ast.AugAssign) or not isinstance(statement.target, ast.Name):
            continue
        fetched, name = fetch_of(statement.value), statement.target.id
        named = [
            here for here in ast.walk(plan.loop.node) if any(overlaps(name, path) for path in _own(here))
        ]
        if (
            isinstance(statement.op, ast.Add)
            and fetched is not None
            and fetched[0] in "if"
            and named == [statement.target]
            and (_begins_as_float(tree, name) or _goes_backward(plan.loop.node, fetched[1]))
        ):
            yield _Sum(name, ast.unparse(fetched[1]), statement.lineno)


def _own(node: ast.AST) -> set[str]:
    return mentions(node) if isinstance(node, ast.Name) else set()


def _is_of_tensors(source: Editor, path: str, found: _Sum) -> bool:
    """Whether what is added is surely a tensor's value: `reward.item()` and `float(line)` ask others just so."""
    program = Program(source.file(path))
    (sum_,) = _at(source, path, found.line).body
    assert isinstance(sum_, cst.AugAssign)
    assert isinstance(sum_.value, cst.Call)
    func = sum_.value.func
    asked = func.value if isinstance(func, cst.Attribute) else sum_.value.args[0].value
    return program.values.kind(asked) in {Kind.TENSOR, Kind.HOST_TENSOR}


def _begins_as_float(tree: ast.Module, name: str) -> bool:
    """Whether the sum begins as `0.0`; one that begins as 0 may be of whole numbers, such as hits."""
    values = [
        each.value
        for each in ast.walk(tree)
        if isinstance(each, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == name for t in each.targets)
    ]
    return bool(values) and all(isinstance(v, ast.Constant) and isinstance(v.value, float) for v in values)


def _goes_backward(loop: ast.AST, tensor: ast.expr) -> bool:
    """Whether the loop computes the tensor's gradients, which whole numbers do not have."""
    text = ast.unparse(tensor)
    return any(
        isinstance(each, ast.expr) and ast.unparse(each) == text
        for call in ast.walk(loop)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
        if call.func.attr in {"backward", "manual_backward"}
        for part in (call.func.value, *call.args)
        for each in ast.walk(part)
    )


def _change(source: Editor, path: str, found: _Sum) -> str:
    torch = module_name(source, path, "torch")
    tree = ast.parse(source.file(path).module.code)  # an import may have moved its line
    found = next(
        each
        for plan in plans_of(tree)
        for each in _sums(tree, plan)
        if (each.name, each.tensor) == (found.name, found.tensor) and _is_of_tensors(source, path, each)
    )
    file = source.file(path)
    line = _at(source, path, found.line)
    loops = [each for each in file.ancestors(line) if isinstance(each, (cst.For, cst.While))]
    text = f"{found.name} += {found.tensor}{KEPT}"
    new = parsed(file, text).with_changes(
        leading_lines=line.leading_lines, trailing_whitespace=line.trailing_whitespace
    )
    insert_after(source, path, loops[0], f"{found.name} = {torch}.as_tensor({found.name}).item()")
    source.change(path, _at(source, path, found.line), lambda _: new)
    return f"{path}:{found.line}: {found.name} is added up on the device"


def _at(source: Editor, path: str, number: int) -> cst.SimpleStatementLine:
    file = source.file(path)
    here = [each for each in file.all(cst.SimpleStatementLine) if file.line(each) == number]
    if len(here) != 1 or len(here[0].body) != 1:
        raise CannotEdit(f"{path}:{number}: the statement shares its line with others")
    return here[0]
