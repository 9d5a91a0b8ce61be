"""Small questions about one piece of syntax, asked by many rules."""

import libcst as cst


def keyword(call: cst.Call, name: str) -> cst.BaseExpression | None:
    """The value given for a keyword argument; None where it is not given."""
    return next(
        (arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == name), None
    )


def argument(call: cst.Call, place: int, name: str) -> cst.BaseExpression | None:
    """The value of an argument that may be given by place or by name."""
    if len(call.args) > place and all(a.keyword is None and not a.star for a in call.args[: place + 1]):
        return call.args[place].value
    return keyword(call, name)


def has_star(call: cst.Call) -> bool:
    """Whether the call passes `*args` or `**kwargs`, so that its arguments are not all known."""
    return any(arg.star for arg in call.args)


def is_literal(node: cst.CSTNode | None, value: str) -> bool:
    """Whether the node is exactly the name `True`, `False` or `None`, or the number written so."""
    return isinstance(node, (cst.Name, cst.Integer, cst.Float)) and node.value == value


def integer(node: cst.CSTNode | None) -> int | None:
    """The value of an integer literal."""
    return node.evaluated_value if isinstance(node, cst.Integer) else None


def string(node: cst.CSTNode | None) -> str | None:
    """The value of a plain string literal."""
    if not isinstance(node, cst.SimpleString):
        return None
    value = node.evaluated_value
    return value if isinstance(value, str) else None


def method(call: cst.CSTNode) -> str:
    """`item` for `x.item()`; empty where the call is not on an attribute."""
    if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute):
        return call.func.attr.value
    return ""


def receiver(call: cst.Call) -> cst.BaseExpression | None:
    """`x` for `x.item()`."""
    return call.func.value if isinstance(call.func, cst.Attribute) else None
