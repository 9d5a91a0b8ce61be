"""The host waits for the device in every training step.

## What it does
Finds, in code that runs in each training step, what makes the host wait for a tensor's value: `.item()`,
`.tolist()`, `.cpu()`, `.numpy()`, `float(tensor)`, `int(tensor)`, `bool(tensor)`, `print(tensor)`, a tensor
in an f-string or a format call, `if tensor`, `while tensor`, `.nonzero()`, `torch.unique`, `masked_select`
and one-argument `torch.where`. Branches that few steps enter (every hundredth step, the first step, `if
verbose`) are left out.

## Why it is slow
Kernels are launched ahead of the device; that is what hides the cost of Python. Reading a value stops the
host until all work before it is done, and then the device idles until the next kernels are launched.

## When it is fine
The value steers the program (early stopping, an environment's action) and cannot be had later. On a CPU
reading a value costs next to nothing: where the file shows no sign of an accelerator this is only
information.

## Example
```python
for x, y in loader:
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
    total += loss.item()
```
Use instead:
```python
    total += loss.detach()        # stays on the device; read it once per epoch
```

## References
- PyTorch, Performance Tuning Guide: avoid unnecessary CPU-GPU synchronization:
  https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.guards import is_rarely_true
from hotloop.lint.infer.kinds import Kind
from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import method, receiver
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity

_READS = frozenset({"item", "tolist", "cpu", "numpy"})
_SIZES = frozenset({"nonzero", "unique", "masked_select"})
_CASTS = frozenset({"float", "int", "bool"})


def check_call(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find calls that read a tensor's value."""
    seen = _reading_method(program, call) or _reading_function(program, call)
    if seen and program.steps.runs_each_step(call):
        yield from _hit(program, call, seen)


def _reading_method(program: Program, call: cst.Call) -> str:
    name, owner = method(call), receiver(call)
    if owner is None or name not in _READS | _SIZES or program.names.of(call.func):
        return ""
    kind = program.values.kind(owner)
    if kind is Kind.TENSOR or (kind is Kind.TENSORS and name != "cpu"):
        return f".{name}() on a tensor"
    return ""


def _reading_function(program: Program, call: cst.Call) -> str:
    values = [arg.value for arg in call.args]
    full = program.names.of(call.func)
    if full in {"torch.nonzero", "torch.unique", "torch.masked_select", "torch.equal"}:
        return f"{full} must know how many elements there are" if _any_tensor(program, values) else ""
    if full == "torch.where" and len(values) == 1 and _any_tensor(program, values):
        return "torch.where with one argument must know how many elements there are"
    if not isinstance(call.func, cst.Name) or full:
        return ""
    if call.func.value in _CASTS and len(values) == 1 and _any_tensor(program, values):
        return f"{call.func.value}() of a tensor"
    if call.func.value == "print" and (_any_tensor(program, values) or _formats(program, call)):
        return "print of a tensor"
    return ""


def _any_tensor(program: Program, values: list[cst.BaseExpression]) -> bool:
    return any(program.values.is_device_tensor(value) for value in values)


def _formats(program: Program, call: cst.Call) -> bool:
    parts: list[cst.BaseExpression] = [
        part.expression for part in program.file.under(call, cst.FormattedStringExpression)
    ]
    for inner in program.file.under(call, cst.Call):
        if method(inner) == "format":
            parts.extend(arg.value for arg in inner.args)
    return _any_tensor(program, parts)


def check_if(program: Program, branch: cst.If) -> Iterator[Hit]:
    """Find branches on a tensor."""
    yield from _branch(program, branch, branch.test, "if")


def check_while(program: Program, loop: cst.While) -> Iterator[Hit]:
    """Find loops on a tensor."""
    yield from _branch(program, loop, loop.test, "while")


def _branch(program: Program, node: cst.If | cst.While, test: cst.BaseExpression, word: str) -> Iterator[Hit]:
    if any(program.values.is_device_tensor(term) for term in _terms(test)) and program.steps.runs_each_step(
        node
    ):
        yield from _hit(program, node, f"`{word}` reads a tensor's value")


def _terms(test: cst.BaseExpression) -> list[cst.BaseExpression]:
    if isinstance(test, cst.BooleanOperation):
        if isinstance(test.operator, cst.And) and is_rarely_true(test.left):
            return _terms(test.left)
        return [*_terms(test.left), *_terms(test.right)]
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return _terms(test.expression)
    return [test]


def _hit(program: Program, node: cst.CSTNode, seen: str) -> Iterator[Hit]:
    if program.on_device:
        yield Hit(node, f"{seen}, in each step")
    else:
        yield Hit(
            node,
            f"{seen}, in each step; the file names no accelerator, where this would matter",
            Severity.INFO,
        )


rule = Rule(
    code="sync-in-step",
    title="The host waits for the device in each step",
    severity=Severity.WARNING,
    advice="Keep the value on the device (`.detach()`) and read it every N steps or once per epoch.",
    optimization="deferred_sync",
    page=__doc__,
    words=("backward", "scaler", "training_step", "compute_loss", "forward"),
    visits=(Visit(cst.Call, check_call), Visit(cst.If, check_if), Visit(cst.While, check_while)),
)
