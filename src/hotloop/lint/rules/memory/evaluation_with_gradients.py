"""Evaluation records gradients that nobody uses.

## What it does
Finds a function (or a loop at module level) that switches a model to `eval()` and calls it in a loop, without
`no_grad` or `inference_mode` around, and without any backward pass or gradient in it. A caller in the same
file that wraps the function is seen.

## Why it is slow
Every activation is kept for a backward pass that never comes: memory as in training, and bookkeeping in each
operation.

## When it is fine
Gradients with respect to the input are wanted (saliency, adversarial examples); functions that speak of
gradients are left out.

## Example
```python
def evaluate(model, loader):
    model.eval()
    for x, y in loader:
        correct += (model(x).argmax(1) == y).sum()
```
Use instead:
```python
@torch.inference_mode()
def evaluate(model, loader):
    model.eval()
    for x, y in loader:
        correct += (model(x).argmax(1) == y).sum()
```

## References
- PyTorch, Locally disabling gradient computation:
  https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disable-grad-doc
"""

import re
from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.names import dotted
from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import method, receiver
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity

_NEEDS_GRADIENTS = re.compile(
    r"grad\b|requires_grad|backward|volatile|\.step\(|set_grad_enabled|no_grad|inference_mode"
)


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find `model.eval()` followed by a loop that runs the model with gradients."""
    owner = receiver(call)
    name = dotted(owner) if owner is not None else None
    if method(call) != "eval" or call.args or name is None or program.without_grad(call):
        return
    function = program.file.enclosing(call, cst.FunctionDef)
    if function is None or "set_grad_enabled(False)" in program.file.text:
        return
    if _NEEDS_GRADIENTS.search(program.file.module.code_for_node(function.body)) or _wrapped(
        program, function
    ):
        return
    run = _run_in_loop(program, function, call, name)
    if run is not None:
        yield Hit(run, f"{name} runs in evaluation mode and records gradients")


def _run_in_loop(program: Program, function: cst.FunctionDef, call: cst.Call, name: str) -> cst.Call | None:
    for other in program.file.under(function, cst.Call):
        if dotted(other.func) != name or program.file.number(other) < program.file.number(call):
            continue
        loop = program.file.enclosing(other, cst.For, cst.While, cst.FunctionDef)
        if isinstance(loop, (cst.For, cst.While)):
            return other
    return None


def _wrapped(program: Program, function: cst.FunctionDef) -> bool:
    """Whether a decorator, the class, or a caller in this file takes care of it."""
    if function.decorators or program.without_grad(function):
        return True
    owner = program.file.enclosing(function, cst.ClassDef)
    if owner is not None and any("Lightning" in (dotted(base.value) or "") for base in owner.bases):
        return True
    called = function.name.value
    callers = [c for c in program.file.all(cst.Call) if (dotted(c.func) or "").rpartition(".")[2] == called]
    return any(program.without_grad(c) for c in callers)


rule = Rule(
    code="evaluation-with-gradients",
    title="Evaluation records gradients",
    severity=Severity.WARNING,
    advice="Put it under torch.inference_mode() or torch.no_grad().",
    optimization="no_grad_evaluation",
    page=__doc__,
    words=(".eval()",),
    visits=(Visit(cst.Call, check),),
)
