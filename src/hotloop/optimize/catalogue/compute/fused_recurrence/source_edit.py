"""Put the one call before the loop: where it was made, the loop takes each step's output from it."""

from __future__ import annotations

import ast
import copy

from hotloop.optimize.catalogue.compute.fused_recurrence.pattern import CellCall, TimeLoop

CALL = "_hotloop_all_steps"
"""The name of what makes all steps; it gives None where the loop is to run."""


def put_before(loop: TimeLoop, site: int) -> None:
    """Change the block that a loop stands in.

    The loop stays as it is but for its cells, so that all it names has the value that it would have had.
    """
    node, steps, num, turn = loop.node, *(f"_hotloop_{word}_{site}" for word in ("steps", "num", "turn"))
    news: list[ast.stmt] = []
    if loop.rows.num is not None:
        news.append(ast.Assign([ast.Name(num, ast.Store())], loop.rows.num))
        assert isinstance(node.iter, ast.Call)
        node.iter.args[0] = _name(num)
    arguments: list[ast.expr] = [
        ast.Constant(site),
        copy.deepcopy(loop.rows.over),
        ast.Constant(loop.rows.dim),
        _name(num) if loop.rows.num is not None else ast.Constant(None),
        ast.Tuple([_told(each) for each in loop.calls], ast.Load()),
    ]
    news.append(ast.Assign([ast.Name(steps, ast.Store())], ast.Call(_name(CALL), arguments, [])))
    test = ast.Compare(_name(steps), [ast.IsNot()], [ast.Constant(None)])
    taken = [_taken(loop, steps, turn), *(_last(each, steps, at) for at, each in enumerate(loop.calls))]
    news.append(ast.If(test, taken, [node]))
    at = next(at for at, each in enumerate(loop.block) if each is node)
    loop.block[at : at + 1] = [ast.fix_missing_locations(ast.copy_location(each, node)) for each in news]


def _told(call: CellCall) -> ast.expr:
    """Return what is said of a cell: itself, its input, its states, and whether a state's first part alone is read."""
    states = ast.Tuple([copy.deepcopy(each) for each in call.states], ast.Load())
    parts = [copy.deepcopy(call.cell), ast.Constant(call.given), states, ast.Constant(call.reads_first)]
    return ast.Tuple(parts, ast.Load())


def _taken(loop: TimeLoop, steps: str, turn: str) -> ast.For:
    """Return the loop, with its cells' outputs taken."""
    body: list[ast.stmt] = []
    statements = [each.statement for each in loop.calls]
    for each in loop.node.body:
        if each in statements:
            value = ast.Subscript(_part(steps, statements.index(each)), _name(turn), ast.Load())
            body.append(ast.copy_location(ast.Assign(copy.deepcopy(each.targets), value), each))
        else:
            body.append(copy.deepcopy(each))
    target = ast.Tuple([ast.Name(turn, ast.Store()), copy.deepcopy(loop.node.target)], ast.Store())
    over = ast.Call(ast.Attribute(_name(steps), "numbered", ast.Load()), [copy.deepcopy(loop.node.iter)], [])
    return ast.copy_location(ast.For(target, over, body, []), loop.node)


def _last(call: CellCall, steps: str, at: int) -> ast.stmt:
    value = ast.Attribute(_part(steps, at), "final", ast.Load())
    return ast.Assign(copy.deepcopy(call.statement.targets), value)


def _part(steps: str, at: int) -> ast.expr:
    return ast.Subscript(_name(steps), ast.Constant(at), ast.Load())


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())
