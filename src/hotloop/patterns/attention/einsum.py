"""The two products of attention as einsum equations: how their operands stand for `scaled_dot_product_attention`."""

from __future__ import annotations

import ast

from hotloop.patterns.refusal import NotFusable


def equation(call: ast.Call) -> tuple[list[list[str]], list[str], list[ast.expr]] | None:
    """Return the labels of both operands, of the result, and the operands; None: it is no einsum of two."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    texts = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    operands = [arg for arg in call.args if not isinstance(arg, ast.Constant)]
    if len(operands) == 1 and isinstance(operands[0], (ast.List, ast.Tuple)):
        operands = operands[0].elts
    if name != "einsum" or len(texts) != 1 or len(operands) != 2:
        return None
    left, arrow, right = texts[0].partition("->")
    given = [_labels(part) for part in left.split(",")]
    if not arrow or len(given) != 2 or "." in texts[0]:
        return None
    return given, _labels(right), operands


def _labels(text: str) -> list[str]:
    """`bhid` and `b h i d` alike; with blanks, a label may be a word."""
    words = text.split()
    return words if len(words) > 1 else list(text.strip())


def scores(given: list[list[str]], out: list[str]) -> tuple[list[str], list[str]]:
    """Return the order in which query and key have to stand, of a product that makes scores.

    Raises:
        NotFusable: it is another product.
    """
    queries, keys = given
    summed = [label for label in queries if label in keys and label not in out]
    *batch, row, column = out
    ok = len(summed) == 1 and row in queries and row not in keys and column in keys and column not in queries
    if not ok or set(batch) - set(queries) or set(batch) - set(keys):
        raise NotFusable("its scores are another product than of queries with keys")
    return [*batch, row, *summed], [*batch, column, *summed]


def values(given: list[list[str]], out: list[str]) -> tuple[list[str], list[str]]:
    """Return the order in which the value has to stand, and in which the result comes, of the second product.

    Raises:
        NotFusable: it is another product.
    """
    weights, value = given
    *batch, row, column = weights
    left = [label for label in value if label not in weights]
    if len(left) != 1 or column not in value or column in out or set(out) != {*batch, row, *left}:
        raise NotFusable("its weights are multiplied with something else than values")
    if set(batch) - set(value):
        raise NotFusable("its values are shared between batches in an einsum")
    return [*batch, column, *left], [*batch, row, *left]


def turned(text: str, now: list[str], wanted: list[str]) -> str:
    """Return the expression with its dimensions in the order wanted."""
    if now == wanted:
        return text
    return f"{text}.permute({', '.join(str(now.index(label)) for label in wanted)})"
