"""The loops of a file, each with what the code around it does to its names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from hotloop.optimize.catalogue.compute.deferred_sync.name_uses import (
    LocalFunctions,
    mentions,
    path_of,
    read_by_inner_functions,
)

_SCOPES = (ast.FunctionDef, ast.Module)
_STEPS = frozenset({"backward", "step"})
_HIDDEN = frozenset({"exec", "eval", "locals", "globals", "vars"})
_COMPILED = ("compile", "script", "jit")


@dataclass
class Loop:
    """One loop in which a statement may wait.

    Attributes:
        node: the loop.
        block: the list of statements that it stands in.
        around: the functions that it stands in.
        head: what is evaluated anew before each turn.
        shared: names that other code reads, too, at times that are not known.
        assignments: names of the same function, and what is mentioned in what they are assigned.
    """

    node: ast.For | ast.While
    block: list[ast.stmt]
    around: tuple[ast.AST, ...] = ()
    head: tuple[ast.AST, ...] = ()
    shared: set[str] = field(default_factory=set)
    assignments: list[tuple[str, set[str]]] = field(default_factory=list)


def loops_of(tree: ast.Module, functions: LocalFunctions) -> Iterator[Loop]:
    """Return the loops of a file that take steps, or hold no other loop; inner ones first."""
    for scope, around in _scopes(tree, ()):
        if _is_left(scope):
            continue
        inner = read_by_inner_functions(scope) | _declared(scope)
        shared = functions.free_names() if isinstance(scope, ast.Module) else inner
        assigned = [
            (target, each.value)
            for each in ast.walk(scope)
            if isinstance(each, ast.Assign)
            for target in each.targets
        ]
        assignments = [(name, mentions(value)) for target, value in assigned for name in mentions(target)]
        # The other way round: what `history = self.history` changes by one name is changed by the other, too.
        assignments += [(path_of(value), mentions(target)) for target, value in assigned if path_of(value)]
        for node, block in reversed(list(_loops(scope))):
            if _looks_at_names(node):
                continue
            head = (node.test,) if isinstance(node, ast.While) else (node.target,)
            yield Loop(node, block, around, head, shared, assignments)


def _scopes(node: ast.AST, around: tuple[ast.AST, ...]) -> Iterator[tuple[ast.AST, tuple[ast.AST, ...]]]:
    here = (*around, node) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else around
    if isinstance(node, _SCOPES):
        yield node, here
    for child in ast.iter_child_nodes(node):
        yield from _scopes(child, here)


def _is_left(scope: ast.AST) -> bool:
    """Whether the function is compiled, or gives its values one by one."""
    decorators = getattr(scope, "decorator_list", [])
    if any(word in ast.unparse(each) for each in decorators for word in _COMPILED):
        return True
    return any(isinstance(each, (ast.Yield, ast.YieldFrom, ast.Await)) for each in _own(scope))


def _looks_at_names(loop: ast.AST) -> bool:
    return any(
        isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id in _HIDDEN
        for each in ast.walk(loop)
    )


def _declared(scope: ast.AST) -> set[str]:
    return {
        name for each in _own(scope) if isinstance(each, (ast.Global, ast.Nonlocal)) for name in each.names
    }


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """Return everything in a function but what stands in functions and classes in it."""
    todo = list(ast.iter_child_nodes(scope))
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            todo.extend(ast.iter_child_nodes(node))


def _loops(scope: ast.AST) -> Iterator[tuple[ast.For | ast.While, list[ast.stmt]]]:
    for node in [scope, *_own(scope)]:
        if node is not scope and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        blocks = [block for _, block in ast.iter_fields(node) if isinstance(block, list)]
        for block in blocks:
            loops = [each for each in block if isinstance(each, (ast.For, ast.While))]
            yield from ((loop, block) for loop in loops if not loop.orelse and _is_step(loop))


def _is_step(loop: ast.For | ast.While) -> bool:
    """Whether a turn of the loop is a step, or the loop holds no other."""
    inner = [each for each in ast.walk(loop) if isinstance(each, (ast.For, ast.While)) and each is not loop]
    if not inner:
        return True
    within = {id(part) for each in inner for part in ast.walk(each)}
    return any(
        isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr in _STEPS
        and id(each) not in within
        for each in ast.walk(loop)
    )
