"""Put what waits into a queue: the loop's tree, changed in place."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

from hotloop.optimize.catalogue.compute.deferred_sync.deferrable_statements import ENTRY, Waiting
from hotloop.optimize.catalogue.compute.deferred_sync.loop_scope import loops_of
from hotloop.optimize.catalogue.compute.deferred_sync.name_uses import LocalFunctions
from hotloop.optimize.catalogue.compute.deferred_sync.pattern import Plan, plan_of

MAKE = "_hotloop_later"
"""The name of what makes a queue."""


def plans_of(tree: ast.Module) -> list[Plan]:
    """Return what can wait in the loops of a file, and what cannot."""
    functions = LocalFunctions(tree)
    plans = [plan_of(loop, functions) for loop in loops_of(tree, functions)]
    return [plan for plan in plans if plan.waiting or plan.kept]


def defer(tree: ast.Module) -> list[Plan]:
    """Change a file; return what was planned for its loops."""
    plans = plans_of(tree)
    for number, plan in enumerate(plans):
        if plan.waiting:
            _Edit(plan, f"_hotloop_queue_{number}").apply()
    return plans


class _Edit:
    def __init__(self, plan: Plan, queue: str) -> None:
        self._plan = plan
        self._queue = queue

    def apply(self) -> None:
        """Let statements wait, and run when they may, when they must, and when the loop ends."""
        loop = self._plan.loop
        through = {id(each) for each in self._plan.through}
        numbers = {id(each.statement): number for number, each in enumerate(self._plan.waiting)}
        _replace(loop.node.body, numbers, through, self)
        loop.node.body.insert(0, self.run("turn", loop.node.body[0]))
        at = next(at for at, each in enumerate(loop.block) if each is loop.node)
        made = self._made(loop.node)
        whole = ast.Try(body=[loop.node], handlers=[], orelse=[], finalbody=[self.run("rest", loop.node)])
        loop.block[at : at + 1] = [made, ast.copy_location(whole, loop.node)]

    def put(self, number: int) -> ast.stmt:
        """Return what stands in a statement's place."""
        each = self._plan.waiting[number]
        arguments: list[ast.expr] = [ast.Constant(number), ast.Constant(each.kinds), *each.values]
        return self.run("put", each.statement, arguments)

    def run(self, how: str, at: ast.stmt, arguments: Sequence[ast.expr] = ()) -> ast.stmt:
        """Return a loop over the entries that a method of the queue gives, which runs the statement of each."""
        queue = ast.Attribute(ast.Name(self._queue, ast.Load()), how, ast.Load())
        entries = ast.Call(queue, list(arguments), [])
        body = _dispatch(self._plan.waiting)
        loop = ast.For(ast.Name(ENTRY, ast.Store()), entries, [body], [])
        return ast.fix_missing_locations(ast.copy_location(loop, at))

    def _made(self, loop: ast.For | ast.While) -> ast.stmt:
        sized = _sized(loop.iter) if isinstance(loop, ast.For) else None
        call = ast.Call(ast.Name(MAKE, ast.Load()), [sized] if sized is not None else [], [])
        statement = ast.Assign([ast.Name(self._queue, ast.Store())], call)
        return ast.fix_missing_locations(ast.copy_location(statement, loop))


def _replace(body: list[ast.stmt], numbers: dict[int, int], through: set[int], edit: _Edit) -> None:
    for at in range(len(body) - 1, -1, -1):
        statement = body[at]
        if id(statement) in numbers:
            body[at] = edit.put(numbers[id(statement)])
            continue
        for block in _blocks(statement):
            _replace(block, numbers, through, edit)
        if id(statement) in through:
            body.insert(at, edit.run("rest", statement))


def _blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    if isinstance(statement, (ast.For, ast.While, ast.FunctionDef, ast.ClassDef)):
        return []
    blocks = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
    return [*blocks, *(handler.body for handler in getattr(statement, "handlers", []))]


def _dispatch(waiting: Sequence[Waiting]) -> ast.stmt:
    """Return the choice of what an entry runs."""
    chain: list[ast.stmt] = []
    for number in range(len(waiting) - 1, -1, -1):
        test = ast.parse(f"{ENTRY}[0] == {number}", mode="eval").body
        late = copy.deepcopy(waiting[number].late)
        branch = ast.If(test, [late], chain)
        for each in (branch, *ast.walk(test)):
            ast.copy_location(each, late)
        chain = [branch]
    return chain[0]


def _sized(over: ast.expr) -> ast.expr | None:
    """Return what says how many turns there are, where evaluating it twice is harmless."""
    if isinstance(over, ast.Call) and isinstance(over.func, (ast.Name, ast.Attribute)) and over.args:
        name = over.func.id if isinstance(over.func, ast.Name) else over.func.attr
        simple = all(isinstance(each, (ast.Name, ast.Constant)) for each in over.args)
        if name == "range" and simple and not over.keywords:
            return copy.deepcopy(over)
        over = over.args[0] if name in {"enumerate", "tqdm", "trange"} else over
    return copy.deepcopy(over) if isinstance(over, (ast.Name, ast.Attribute)) else None
