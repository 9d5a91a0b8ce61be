"""Is a factor a Python number? The fused kernels take no tensor for their scale."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from hotloop.patterns.attention.names import CONSTRUCTOR

_DEPTH = 12
_PLAIN = frozenset({"float", "int", "len"})
"""Functions that give a number, whatever they are given."""
_OF_NUMBERS = frozenset({"sqrt", "pow", "min", "max", "abs", "power", "rsqrt"})
"""Those that give one of numbers."""
_METHODS = frozenset({"size", "dim", "numel", "item"})


def is_number(node: ast.expr, names: Mapping[str, ast.expr]) -> bool:
    """Whether an expression is surely a number.

    A parameter of the constructor counts as one where it is computed with (`dim ** -0.5`), not as it is: what is called
    `scale` there may be a tensor.

    Args:
        node: the factor.
        names: what each name, `self.` included, was seen to be given, where that is one thing.
    """
    return not _is_of_constructor(node, names) and _is_number(node, names, 0)


def _is_number(node: ast.expr, names: Mapping[str, ast.expr], depth: int) -> bool:
    if depth > _DEPTH:
        return False
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float))
    if isinstance(node, (ast.Name, ast.Attribute)):
        known = names.get(ast.unparse(node))
        if known is not None:
            return _is_number(known, names, depth + 1)
    if _is_of_constructor(node, names):
        return True
    if isinstance(node, ast.Subscript):
        return _is_element(node, names, depth)
    parts = _parts(node)
    return (bool(parts) and all(_is_number(each, names, depth + 1) for each in parts)) or _is_size(node)


def _parts(node: ast.expr) -> list[ast.expr]:
    """Return what has to be numbers for an expression to be one; nothing: it is none of these."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if isinstance(node, ast.BoolOp):
        return node.values
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.Call) and not node.keywords and _name(node) in _OF_NUMBERS:
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if owner is None or ast.unparse(owner) in {"np", "numpy"}:
            return node.args
    return []


def _is_element(node: ast.Subscript, names: Mapping[str, ast.expr], depth: int) -> bool:
    """Whether it is one of the sizes of a tensor, or of numbers in a tuple: `x.shape[-1]`, `shape[-1]`."""
    whole = names.get(ast.unparse(node.value), node.value)
    if isinstance(node.slice, ast.Slice):
        return False
    if isinstance(whole, ast.Tuple):
        return all(_is_number(each, names, depth + 1) for each in whole.elts)
    return ast.unparse(whole).endswith((".shape", ".size()"))


def _is_size(node: ast.expr) -> bool:
    """Whether it is a number of itself: `math.sqrt(x)`, `float(x)`, `x.size(-1)`."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        is_sized = node.func.attr in _METHODS and (node.func.attr != "size" or bool(node.args))
        return ast.unparse(node.func.value) == "math" or is_sized
    return _name(node) in _PLAIN


def _is_of_constructor(node: ast.expr, names: Mapping[str, ast.expr], depth: int = 0) -> bool:
    """Whether it is a parameter of the constructor, or an attribute of one: `config.width`."""
    if depth > _DEPTH:
        return False
    if isinstance(node, ast.Call):
        return _name(node) == CONSTRUCTOR
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return False
    known = names.get(ast.unparse(node))
    if known is not None:
        return _is_of_constructor(known, names, depth + 1)
    return isinstance(node, ast.Attribute) and _is_of_constructor(node.value, names, depth + 1)


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
