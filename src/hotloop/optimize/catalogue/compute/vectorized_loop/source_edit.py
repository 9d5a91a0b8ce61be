"""Put the one call beside the loop: whoever is asked says which of the two runs."""

from __future__ import annotations

import ast
import copy

from hotloop.optimize.catalogue.compute.vectorized_loop.pattern import RowLoop

CALL = "_hotloop_all_rows"
"""The name of what makes all turns; it gives None where the loop is to run."""


def put_beside(loop: RowLoop, site: int) -> None:
    """Change the block that a loop stands in."""
    node, turn, results = loop.node, f"_hotloop_turn_{site}", f"_hotloop_results_{site}"
    function = _turn(loop, turn)
    call = _call(
        [
            ast.Constant(site),
            _name(turn),
            _tuple(loop.over),
            loop.num or ast.Constant(None),
            _tuple(loop.called),
        ]
    )
    made = ast.Assign([ast.Name(results, ast.Store())], call)
    test = ast.Compare(_name(results), [ast.IsNot()], [ast.Constant(None)])
    taken = [_taken(loop, number, results) for number in range(len(loop.results))]
    choice = ast.If(test, taken, [node])
    at = next(at for at, each in enumerate(loop.block) if each is node)
    news = [ast.fix_missing_locations(ast.copy_location(each, node)) for each in (function, made, choice)]
    loop.block[at : at + 1] = news


def _turn(loop: RowLoop, name: str) -> ast.FunctionDef:
    """Return the function of one turn."""
    arguments = ast.arguments([], [ast.arg(row) for row in loop.rows], None, [], [], None, [])
    gives = ast.Return(_tuple([each.value for each in loop.results]))
    function = ast.parse(f"def {name}(): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    function.args, function.body = arguments, [*copy.deepcopy(loop.temporaries), gives]
    return function


def _taken(loop: RowLoop, number: int, results: str) -> ast.stmt:
    """Return the statement that takes one of the results."""
    one = loop.results[number]
    value: ast.expr = ast.Subscript(_name(results), ast.Constant(number), ast.Load())
    if one.kind == "append":
        return ast.Expr(ast.Call(ast.Attribute(_name(one.name), "extend", ast.Load()), [value], []))
    if one.kind == "place":
        stop = ast.Call(_name("len"), [value], [])
        target = ast.Subscript(_name(one.name), ast.Slice(None, stop), ast.Store())
        return ast.Assign([target], value)
    total = ast.Call(ast.Attribute(value, "sum", ast.Load()), [ast.Constant(0)], [])
    if isinstance(one.statement, ast.AugAssign):
        return ast.AugAssign(ast.Name(one.name, ast.Store()), ast.Add(), total)
    return ast.Assign([ast.Name(one.name, ast.Store())], ast.BinOp(_name(one.name), ast.Add(), total))


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _tuple(parts: list[ast.expr]) -> ast.Tuple:
    return ast.Tuple(copy.deepcopy(parts), ast.Load())


def _call(arguments: list[ast.expr]) -> ast.Call:
    return ast.Call(_name(CALL), copy.deepcopy(arguments), [])
