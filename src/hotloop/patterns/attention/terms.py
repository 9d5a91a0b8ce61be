"""What stands between the two products of attention, as arguments of `scaled_dot_product_attention`."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from hotloop.patterns.refusal import NotThis

MUCH = -1e3
"""A score of less than this has no weight beside one that is not masked."""
QUERY = "__query__"
"""Stands for the query until that is known."""


@dataclass
class Terms:
    """Collected from the softmax inwards; every text is an expression of the user's.

    Attributes:
        keep: masks that are true where a score counts.
        added: masks that are added.
        factors: of the scores, with their operator.
        dropout: its probability; empty: there is none.
        only_if: the condition under which the one mask is there at all.
        causal: the one mask is a triangle that nothing changes.
    """

    keep: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    factors: list[tuple[str, str]] = field(default_factory=list)
    dropout: str = ""
    only_if: str = ""
    causal: bool = False

    def mask(self, query: str) -> str:
        """Return the mask as one expression; empty: there is none.

        Raises:
            NotThis: masks of both kinds, or a conditional one beside another.
        """
        num = len(self.keep) + len(self.added)
        if self.only_if and num > 1:
            raise NotThis("it has several masks, one of them under a condition")
        if self.keep and self.added:
            raise NotThis("it has masks of two kinds")
        text = " & ".join(self.keep) if len(self.keep) < 2 else " & ".join(f"({each})" for each in self.keep)
        if self.added:
            text = self.added[0] if len(self.added) == 1 else " + ".join(f"({each})" for each in self.added)
            # The scores would have been promoted; the fused kernels want one dtype.
            text = f"({text}).to({query}.dtype)" if not _is_plain(text) else f"{text}.to({query}.dtype)"
        text = text.replace(QUERY, query)
        return f"{text} if {self.only_if} else None" if self.only_if else text

    def scale(self) -> str:
        """Return what the product is multiplied with."""
        if not self.factors:
            return "1.0"
        text = ""
        for operator, factor in reversed(self.factors):
            shown = factor if _is_plain(factor) else f"({factor})"
            first = shown if operator == "*" else f"1.0 / {shown}"
            text = f"{text} {operator} {shown}" if text else first
        return text[1:-1] if len(self.factors) == 1 and text.startswith("(") and text.endswith(")") else text


def _is_plain(text: str) -> bool:
    return isinstance(
        ast.parse(text, mode="eval").body, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)
    )


def is_minus_infinity(node: ast.expr) -> bool:
    """Whether it is written as minus infinity."""
    text = ast.unparse(node).lower().replace('"', "'").replace("numpy", "np")
    return text in {
        "float('-inf')", "-float('inf')", "-math.inf", "-torch.inf", "-np.inf", "-float('infinity')", "-inf",
        "float('-infinity')",
    }  # fmt: skip


def is_very_negative(node: ast.expr) -> bool:
    """Whether it is a number so low that what is filled with it has no weight, or the lowest of a dtype."""
    text = ast.unparse(node)
    if isinstance(node, ast.Call) and text.startswith("float(") and len(node.args) == 1:
        node = node.args[0]
    try:
        return float(ast.literal_eval(node)) <= MUCH
    except (ValueError, TypeError, SyntaxError):
        return "finfo(" in text and (text.endswith(".min") or text.startswith("-"))


def text_of(node: ast.expr) -> str:
    """Return an expression as text, with large numbers as people write them: `-1e9`."""
    text = ast.unparse(node)
    for constant in ast.walk(node):
        value = constant.value if isinstance(constant, ast.Constant) else None
        short = f"{value:g}".replace("e+0", "e").replace("e+", "e") if isinstance(value, float) else ""
        if short and "e" in short and float(short) == value:
            text = text.replace(repr(value), short)
    return text


def negated(node: ast.expr) -> str:
    """Return the opposite of a condition, as a person would write it."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
        operator = ast.NotEq() if isinstance(node.ops[0], ast.Eq) else ast.Eq()
        return ast.unparse(ast.Compare(node.left, [operator], node.comparators))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return ast.unparse(node.operand)
    if isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
        return f"~{ast.unparse(node)}"
    return f"~({ast.unparse(node)})"
