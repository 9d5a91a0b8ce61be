"""Compiled code leaves the graph.

## What it does
Finds `print`, `.item()`, `.tolist()`, `.numpy()` and `breakpoint()` inside a function decorated with
`torch.compile`.

## Why it is slow
The compiler ends its graph there, goes back to Python, and starts another: launches and memory passes that
fusion would have saved, and guards checked twice.

## When it is fine
A break once at the very start or end of the function costs little.

## Example
```python
@torch.compile
def step(x):
    y = x * 2
    print(y)
    return y + 1
```
Use instead:
```python
@torch.compile
def step(x):
    return x * 2 + 1
```

## References
- [PyTorch, torch.compile: graph breaks](https://docs.pytorch.org/docs/stable/torch.compiler_faq.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import method
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity

_BREAKS = frozenset({"item", "tolist", "numpy"})


def check(program: Program, function: cst.FunctionDef) -> Iterator[Hit]:
    """Find what breaks the graph of a compiled function."""
    if not any(_compiles(program, decorator.decorator) for decorator in function.decorators):
        return
    for call in program.file.under(function.body, cst.Call):
        plain = call.func.value if isinstance(call.func, cst.Name) else ""
        if plain in {"print", "breakpoint"}:
            yield Hit(call, f"{plain}() in a compiled function")
        elif method(call) in _BREAKS and not program.names.call(call):
            yield Hit(call, f".{method(call)}() in a compiled function")


def _compiles(program: Program, node: cst.BaseExpression) -> bool:
    target = node.func if isinstance(node, cst.Call) else node
    return program.names.of(target) == "torch.compile"


rule = Rule(
    code="graph-break-in-compiled-code",
    title="A compiled function leaves the graph",
    severity=Severity.WARNING,
    advice="Move it out of the compiled function.",
    optimization="compile",
    page=__doc__,
    words=("torch.compile", "compile"),
    visits=(Visit(cst.FunctionDef, check),),
)
