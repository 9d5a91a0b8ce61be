"""What each name of a function, and each attribute of its class, was seen to be given, where that is one thing."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator, Mapping

Function = ast.FunctionDef | ast.AsyncFunctionDef
CONSTRUCTOR = "__of_constructor__"
"""Called with a parameter of `__init__` in what an attribute was given: it is no name of the method that reads it."""
_LOCALS_OF_LOCALS = 4


def of_module(tree: ast.Module) -> dict[str, ast.expr]:
    """Return what the names outside of functions are given; none that anything else has, too."""
    outside = [each for each in tree.body if not isinstance(each, (Function, ast.ClassDef))]
    own = _given(ast.Module(outside, []))
    everywhere = _stores(tree)
    return {name: value for name, value in own.items() if everywhere[name] == 1 and name.isidentifier()}


def of_class(cls: ast.ClassDef) -> dict[str, ast.expr]:
    """Return what the attributes of its objects are given (`self.mask`), locals of the method resolved.

    A local of one method says nothing of a name in another, so there are no other names.
    """
    found = {
        f"self.{name}": value
        for name, value in _given(ast.Module([each for each in cls.body if not _is_scope(each)], [])).items()
    }
    unique = _given(cls)
    for method in (each for each in cls.body if isinstance(each, Function)):
        known = of_function(method)
        if method.name == "__init__":
            given = _parameters(method) - set(_stores(method))
            known |= {name: _expression(f"{CONSTRUCTOR}({name})") for name in given}
        own = {name: value for name, value in _given(method).items() if name.startswith("self.")}
        found = {name: value for name, value in found.items() if name not in own}
        found |= {name: _resolved(value, known) for name, value in own.items() if name in unique}
    changed = _stores(cls)
    return {name: value for name, value in found.items() if changed[name] <= 1}


def of_function(function: Function) -> dict[str, ast.expr]:
    """Return what the locals of a function are given: never a parameter, which a caller gives a value, too."""
    parameters = _parameters(function)
    return {name: value for name, value in _given(function).items() if name not in parameters}


def hidden_by(function: Function) -> set[str]:
    """Return the names that mean something else in a function than around it."""
    return _parameters(function) | set(_stores(function))


def _given(scope: ast.AST) -> dict[str, ast.expr]:
    stores = _stores(scope)
    return {name: value for name, value in _assignments(scope) if stores[name] == 1}


def _stores(scope: ast.AST) -> Counter[str]:
    """Return how often each name is given something, or a part of it is."""
    kinds = (ast.Name, ast.Attribute, ast.Subscript)
    stored = [
        each for each in ast.walk(scope) if isinstance(each, kinds) and not isinstance(each.ctx, ast.Load)
    ]
    whole = [each.value if isinstance(each, ast.Subscript) else each for each in stored]
    buffers = [name for node in ast.walk(scope) for name, _ in _buffer(node)]
    return Counter([*map(ast.unparse, whole), *buffers])


def _assignments(scope: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            yield from _pairs(node.targets[0], node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield ast.unparse(node.target), node.value
        yield from _buffer(node)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield each name with its part of the value: of `a, b = 1, 2`, and of `n, d = x.shape`."""
    if not isinstance(target, ast.Tuple):
        yield ast.unparse(target), value
    elif isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
        for one, part in zip(target.elts, value.elts, strict=True):
            yield ast.unparse(one), part
    elif ast.unparse(value).endswith((".shape", ".size()")):
        for at, one in enumerate(target.elts):
            yield ast.unparse(one), _expression(f"{ast.unparse(value)}[{at}]")


def _buffer(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Call) and ast.unparse(node.func) in {
        "self.register_buffer",
        "self.register_parameter",
    }:
        name, value = [*node.args, None, None][:2]
        if isinstance(name, ast.Constant) and value is not None:
            yield f"self.{name.value!s}", value


def _parameters(function: Function) -> set[str]:
    given = function.args
    single = [each for each in (given.vararg, given.kwarg) if each is not None]
    return {each.arg for each in [*given.posonlyargs, *given.args, *given.kwonlyargs, *single]} - {"self"}


def _is_scope(node: ast.AST) -> bool:
    return isinstance(node, (Function, ast.ClassDef))


def _resolved(value: ast.expr, known: Mapping[str, ast.expr]) -> ast.expr:
    """Return an expression with the locals in it replaced by what they were given."""
    for _ in range(_LOCALS_OF_LOCALS):
        value = _Replace(known).visit(copy.deepcopy(value))
    return value


class _Replace(ast.NodeTransformer):
    def __init__(self, known: Mapping[str, ast.expr]) -> None:
        self._known = known

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Leave a parameter as it is that was marked before."""
        is_marked = isinstance(node.func, ast.Name) and node.func.id == CONSTRUCTOR
        return node if is_marked else self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Return what a name was given."""
        return self._known.get(node.id, node)


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body
