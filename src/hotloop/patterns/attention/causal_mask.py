"""Is a mask the causal triangle? Read from how the class, or the function, makes it."""

from __future__ import annotations

import ast
from collections.abc import Mapping

_VIEWS = frozenset(
    {
        "view",
        "reshape",
        "unsqueeze",
        "bool",
        "to",
        "type",
        "int",
        "byte",
        "float",
        "expand",
        "type_as",
        "detach",
    }
)


def is_causal(keep: ast.expr, names: Mapping[str, ast.expr]) -> bool:
    """Whether an expression, true where a score counts, is the lower triangle from the upper left corner.

    Args:
        keep: the condition.
        names: what each name, `self.` included, was seen to be given, where that is one thing.
    """
    if isinstance(keep, ast.UnaryOp) and isinstance(keep.op, ast.Invert):
        return _made_by(keep.operand, names) == "above"
    if isinstance(keep, ast.Compare) and len(keep.ops) == 1:
        against = keep.comparators[0]
        if isinstance(against, ast.Constant) and against.value in {0, 1}:
            counts = isinstance(keep.ops[0], ast.NotEq) == (against.value == 0)
            return _made_by(keep.left, names) == ("below" if counts else "above")
        return False
    return _made_by(keep, names) == "below"


def is_causal_bias(added: ast.expr, names: Mapping[str, ast.expr]) -> bool:
    """Whether an expression that is added is minus infinity above the diagonal, and nothing else."""
    return _made_by(added, names, filled=True) == "above"


def _made_by(node: ast.expr, names: Mapping[str, ast.expr], *, filled: bool = False, depth: int = 0) -> str:
    """Return `below` for a lower triangle with its diagonal, `above` for what is above the diagonal, else nothing."""
    if depth > 12:
        return ""
    if isinstance(node, (ast.Name, ast.Attribute)):
        known = names.get(ast.unparse(node))
        return _made_by(known, names, filled=filled, depth=depth + 1) if known is not None else ""
    if isinstance(node, ast.Subscript):
        return (
            _made_by(node.value, names, filled=filled, depth=depth + 1)
            if _from_the_corner(node.slice)
            else ""
        )
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
        one = node.comparators[0]
        is_one = isinstance(one, ast.Constant) and one.value in {1}
        return _made_by(node.left, names, depth=depth + 1) if is_one and not filled else ""
    if not isinstance(node, ast.Call):
        return ""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    is_method = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) not in {
        "torch",
        "np",
        "numpy",
    }
    if name in _VIEWS and is_method:
        assert isinstance(node.func, ast.Attribute)
        return _made_by(node.func.value, names, filled=filled, depth=depth + 1)
    return _triangle(node, name, is_method=is_method, filled=filled)


def _triangle(call: ast.Call, name: str, *, is_method: bool, filled: bool) -> str:
    if name not in {"tril", "triu"}:
        return ""
    assert not is_method or isinstance(call.func, ast.Attribute)
    matrix = call.func.value if is_method else call.args[0] if call.args else None  # type: ignore[attr-defined]
    rest = call.args if is_method else call.args[1:]
    diagonal = next(
        (word.value for word in call.keywords if word.arg == "diagonal"), rest[0] if rest else None
    )
    offset = 0 if diagonal is None else diagonal.value if isinstance(diagonal, ast.Constant) else None
    text = ast.unparse(matrix).replace('"', "'") if matrix is not None else ""
    wanted = "full(" if filled else "ones("
    if wanted not in text.split("(")[0] + "(" or (
        filled and "-inf" not in text.lower().replace("-math.", "-")
    ):
        return ""
    return {("tril", 0): "below", ("triu", 1): "above"}.get((name, offset), "")  # type: ignore[arg-type]


def _from_the_corner(index: ast.expr) -> bool:
    """Whether an index takes leading rows and columns: `[:, :, :T, :T]`, `[None, None]`."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(
        (isinstance(part, ast.Slice) and part.lower is None and part.step is None)
        or (isinstance(part, ast.Constant) and part.value in {None, ...})
        for part in parts
    )
