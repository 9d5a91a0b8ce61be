"""An activation function is written out operation by operation.

## What it does
Finds GELU (both forms), SiLU and Mish, however they are written: a formula is recognised by its values. Functions
that are compiled or scripted are left out.

## Why it is slow
Each operation reads and writes the whole activation and is kept for the backward pass: eight passes over
memory where the library's function makes one.

## When it is fine
The whole model is compiled, which fuses the chain.

## Example
```python
y = 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x**3)))
```
Use instead:
```python
y = F.gelu(x, approximate="tanh")
```

## References
- PyTorch, Performance Tuning Guide: fuse operations:
  https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity
from hotloop.patterns.activations.formula import Function
from hotloop.patterns.activations.pattern import WORDS, written_out


def check(program: Program, module: cst.Module) -> Iterator[Hit]:  # noqa: ARG001
    """Find such formulas."""
    for found in written_out(program.file.text):
        node = program.file.first_at(found.expression.lineno, cst.BinaryOperation, cst.Call)
        if node is not None and not _compiled(program, node):
            yield Hit(node, f"{_named(found.formula.function)}, written out")


def _named(function: Function) -> str:
    if function.name == "gelu":
        return f"GELU ({'tanh' if function.keywords else 'erf'} form)"
    return {"silu": "SiLU", "mish": "Mish"}.get(function.name, function.name)


def _compiled(program: Program, node: cst.CSTNode) -> bool:
    function = program.file.enclosing(node, cst.FunctionDef)
    if function is None:
        return False
    text = [program.file.module.code_for_node(decorator) for decorator in function.decorators]
    in_autograd = function.name.value == "backward"
    return in_autograd or any("compile" in line or "jit" in line for line in text)


rule = Rule(
    code="handwritten-activation",
    title="An activation function is written out by hand",
    severity=Severity.INFO,
    advice="Use the function of torch.nn.functional, or compile it.",
    optimization="fused_pointwise",
    page=__doc__,
    words=WORDS,
    visits=(Visit(cst.Module, check),),
)
