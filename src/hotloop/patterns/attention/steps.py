"""The expressions that attention is written with: products, scaling, masks, dropout, casts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from hotloop.patterns.attention import einsum
from hotloop.patterns.attention.causal_mask import is_causal, is_causal_bias
from hotloop.patterns.attention.scale_factor import is_number
from hotloop.patterns.attention.terms import (
    QUERY,
    Terms,
    is_minus_infinity,
    is_very_negative,
    negated,
    text_of,
)
from hotloop.patterns.refusal import NotThis
from hotloop.patterns.torch_modules import is_torch_module

CASTS = frozenset({"to", "type_as", "float", "type", "half", "bfloat16", "contiguous"})
_LAST_TWO = ({"-2", "-1"}, {"2", "3"})


@dataclass(frozen=True)
class Products:
    """A matrix product.

    Attributes:
        node: the expression.
        weights: its left factor.
        right: its right factor.
        labels: of an einsum: both operands' and the result's.
    """

    node: ast.expr
    weights: ast.expr
    right: ast.expr
    labels: tuple[list[list[str]], list[str]] | None = None

    def value(self) -> tuple[str, str]:
        """Return the value, and what has to follow the call, of a second product."""
        text = _atom(self.right)
        if self.labels is None:
            return ast.unparse(self.right), ""
        given, out = self.labels
        wanted, comes = einsum.values(given, out)
        turn = einsum.turned("", comes, out)
        return einsum.turned(text, given[1], wanted), turn


def product_of(node: ast.expr) -> Products | None:
    """Return an expression as a matrix product; None: it is none."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return Products(node, node.left, node.right)
    if not isinstance(node, ast.Call):
        return None
    equation = einsum.equation(node)
    if equation is not None:
        given, out, (left, right) = equation
        return Products(node, left, right, (given, out))
    name, owner = called(node)
    if name in {"matmul", "bmm"}:
        factors = ([owner] if owner is not None else []) + list(node.args)
        if len(factors) == 2:
            return Products(node, factors[0], factors[1])
    return None


def called(call: ast.Call) -> tuple[str, ast.expr | None]:
    """Return the name of what is called, and the object whose method it is; None: it is a function of a module."""
    if isinstance(call.func, ast.Name):
        return call.func.id, None
    if isinstance(call.func, ast.Attribute):
        owner = ast.unparse(call.func.value)
        is_module = is_torch_module(call.func.value) or owner in {
            "torch",
            "F",
            "nn.functional",
            "torch.nn.functional",
            "functional",
            "np",
            "math",
        }
        return call.func.attr, None if is_module else call.func.value
    return "", None


def leading(query: str) -> str:
    """Return an expression whose dtype is the query's: the name that it begins with, without what turns it."""
    node: ast.expr = ast.parse(query, mode="eval").body
    return query if isinstance(node, (ast.Name, ast.Attribute)) else f"({query})"


def _atom(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) else f"({text})"


def keys_of(right: ast.expr) -> str:
    """Return the keys of a product whose right factor they are, turned."""
    if isinstance(right, ast.Attribute) and right.attr == "mT":
        return ast.unparse(right.value)
    if isinstance(right, ast.Call) and isinstance(right.func, ast.Attribute):
        given = {ast.unparse(arg) for arg in right.args}
        if right.func.attr in {"transpose", "swapaxes"} and given in _LAST_TWO:
            return ast.unparse(right.func.value)
        if right.func.attr == "permute" and [ast.unparse(arg) for arg in right.args] == ["0", "1", "3", "2"]:
            return ast.unparse(right.func.value)
    return f"{_atom(right)}.transpose(-2, -1)"


class Step:
    """Takes the operations on the scores and the weights one by one, from the outside in.

    Args:
        names: what each name of the function and its class was seen to be given.
    """

    def __init__(self, names: Mapping[str, ast.expr]) -> None:
        self.terms = Terms()
        self.unsure = ""
        """Why only a run can show that the kernels take what was found; empty: the source shows it."""
        self._names = names
        self._test = ""

    def made(self, name: ast.expr) -> ast.expr | None:
        """Return what a name was given; None: that is not known."""
        return self._names.get(ast.unparse(name))

    @contextmanager
    def only_if(self, test: str) -> Iterator[None]:
        """Take an operation that stands under a condition."""
        self._test = test
        yield
        self._test = ""

    def after_softmax(self, node: ast.Call) -> ast.expr | None:
        """Take dropout or a cast of the weights; return what it was applied to. None: it is something else.

        Raises:
            NotThis: an operation that the fused kernels do not have.
        """
        name, owner = called(node)
        if name in CASTS and owner is not None:
            return owner
        if name == "dropout" and owner is None and isinstance(node.func, ast.Attribute):
            self._dropout(_function_dropout(node))
            return node.args[0]
        made = self.made(node.func)
        is_dropout = made is not None and isinstance(made, ast.Call) and called(made)[0] == "Dropout"
        is_given = isinstance(node.func, ast.Name) and "drop" in node.func.id
        if len(node.args) == 1 and (is_dropout or is_given):
            it = ast.unparse(node.func)
            self._dropout(f"{it}.p if {it}.training else 0.0")
            return node.args[0]
        return None

    def _dropout(self, text: str) -> None:
        if self.terms.dropout:
            raise NotThis("its weights go through dropout twice")
        self.terms.dropout = f"({text}) if {self._test} else 0.0" if self._test else text

    def on_scores(self, node: ast.expr) -> ast.expr | None:
        """Take scaling, a mask or a cast of the scores; return what it was applied to. None: it is something else."""
        if isinstance(node, ast.BinOp):
            return self._operator(node)
        if not isinstance(node, ast.Call):
            return None
        name, owner = called(node)
        name = name.rstrip("_")
        if name == "where" and owner is None and len(node.args) == 3:
            return self._filled(node.args[1], node.args[0], node.args[2], keeps=True)
        if owner is None:
            return None
        if name == "masked_fill" and len(node.args) == 2:
            return self._filled(owner, node.args[0], node.args[1], keeps=False)
        if name in {"mul", "div"} and len(node.args) == 1 and not node.keywords:
            return self._scaled(owner, "*" if name == "mul" else "/", node.args[0])
        if name == "add" and len(node.args) == 1 and not node.keywords:
            return self._added(owner, node.args[0])
        return owner if name in CASTS else None

    def _operator(self, node: ast.BinOp) -> ast.expr | None:
        inner, other = node.left, node.right
        if not isinstance(node.op, ast.Div) and not _has_product(inner):
            turned = _has_product(other) or _is_number(inner)
            inner, other = (other, inner) if turned else (inner, other)
        if isinstance(node.op, (ast.Mult, ast.Div)):
            return self._scaled(inner, "*" if isinstance(node.op, ast.Mult) else "/", other)
        return self._added(inner, other) if isinstance(node.op, ast.Add) else None

    def _scaled(self, inner: ast.expr, operator: str, factor: ast.expr) -> ast.expr:
        if self._test:
            raise NotThis(f"its scores are scaled under a condition: {self._test}")
        if not is_number(factor, self._names):
            self.unsure = f"its scores are scaled by {ast.unparse(factor)}, which may be a tensor"
        self.terms.factors.append((operator, ast.unparse(factor)))
        return inner

    def _added(self, inner: ast.expr, mask: ast.expr) -> ast.expr:
        if self.terms.factors:
            raise NotThis("its scores are scaled after something was added to them")
        self._mask(self.terms.added, ast.unparse(mask))
        self.terms.causal = is_causal_bias(mask, self._names)
        return inner

    def _mask(self, masks: list[str], text: str) -> None:
        masks.append(text)
        self.terms.only_if = self.terms.only_if or self._test

    def _filled(self, inner: ast.expr, condition: ast.expr, fill: ast.expr, *, keeps: bool) -> ast.expr:
        kept = ast.unparse(condition) if keeps else negated(condition)
        if is_minus_infinity(fill):
            self._mask(self.terms.keep, kept)
        elif is_very_negative(fill):
            # A row that is masked as a whole gives the mean of the values, and with a mask of truths nothing.
            gone = negated(condition) if keeps else ast.unparse(condition)
            lowest = re.sub(r"finfo\([^()]*\)", f"finfo({QUERY}.dtype)", text_of(fill))
            self._mask(self.terms.added, f"({gone}) * {lowest}")
        else:
            raise NotThis(f"its scores are filled with {ast.unparse(fill)}")
        self.terms.causal = is_causal(ast.parse(kept, mode="eval").body, self._names)
        return inner


def _has_product(node: ast.expr) -> bool:
    return any(product_of(each) for each in ast.walk(node) if isinstance(each, ast.expr))


def _is_number(node: ast.expr) -> bool:
    text = ast.unparse(node)
    return isinstance(node, ast.Constant) or "scale" in text or "sqrt" in text


def _function_dropout(node: ast.Call) -> str:
    words = {word.arg: ast.unparse(word.value) for word in node.keywords}
    given = [ast.unparse(arg) for arg in node.args[1:]]
    p = words.get("p", given[0] if given else "0.5")
    training = words.get("training", given[1] if len(given) > 1 else "True")
    return p if training == "True" else f"{p} if {training} else 0.0"
