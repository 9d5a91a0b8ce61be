"""Which calls move a tensor to an accelerator: `.to(...)` also takes a dtype, and another tensor."""

import re

import libcst as cst

from hotloop.lint.infer.names import dotted
from hotloop.lint.read.syntax import keyword, method, string

_DEVICE = re.compile(r"dev|cuda|gpu|rank|^(?:mps|xpu)\b", re.IGNORECASE)
"""What programs name devices by; `.to(dtype)`, `.to(other)` and `.to(x.dtype)` hold none of it."""


def moves_to_device(call: cst.Call) -> bool:
    """Whether the call is `.cuda()`, or a `.to()` whose argument is a device other than the CPU."""
    if method(call) == "cuda":
        return True
    if method(call) != "to":
        return False
    target = call.args[0].value if call.args and call.args[0].keyword is None else keyword(call, "device")
    return isinstance(target, cst.Integer) or (target is not None and names_device(target))


def names_device(node: cst.BaseExpression) -> bool:
    """Whether an expression names a device other than the CPU."""
    if isinstance(node, cst.Call):
        made_of = node.args[0].value if node.args else None
        return string(made_of) != "cpu" and names_device(node.func)
    if isinstance(node, cst.IfExp):
        return names_device(node.body) or names_device(node.orelse)
    if isinstance(node, cst.Subscript):
        return names_device(node.value)
    if isinstance(node, cst.FormattedString):
        texts = [part.value for part in node.parts if isinstance(part, cst.FormattedStringText)]
    else:
        texts = [string(node) or (dotted(node) or "").rpartition(".")[2]]
    return any(_DEVICE.search(text) for text in texts)
