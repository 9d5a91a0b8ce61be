"""An activation function is written out operation by operation.

## What it does
Finds GELU written with `tanh` and 0.044715 or with `erf`, and SiLU written as `x * torch.sigmoid(x)`, outside
functions that are compiled or scripted.

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

from hotloop.lint.infer.names import dotted
from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import method, receiver
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity


def check(program: Program, product: cst.BinaryOperation) -> Iterator[Hit]:
    """Find the outermost product of such a formula."""
    if not isinstance(product.operator, cst.Multiply) or _compiled(program, product):
        return
    if isinstance(program.file.parent(product), cst.BinaryOperation):
        return
    called = {_operation(program, call) for call in program.file.under(product, cst.Call)}
    constants = {number.value for number in program.file.under(product, cst.Float)}
    if not any(isinstance(factor, (cst.Name, cst.Attribute)) for factor in _factors(product)):
        return  # a distribution function, not an activation
    if "tanh" in called and "0.044715" in constants:
        yield Hit(product, "GELU (tanh form), written out")
    elif "erf" in called and "0.5" in constants and "sqrt" in called | _attributes(program, product):
        yield Hit(product, "GELU (erf form), written out")
    elif _is_silu(program, product):
        yield Hit(product, "SiLU, written out")


def _factors(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
        return [*_factors(node.left), *_factors(node.right)]
    return [node]


def _operation(program: Program, call: cst.Call) -> str:
    full = program.names.call(call)
    return full.rpartition(".")[2] if full else method(call)


def _attributes(program: Program, node: cst.CSTNode) -> set[str]:
    return {"sqrt"} if any(f.value.startswith("1.41") for f in program.file.under(node, cst.Float)) else set()


def _is_silu(program: Program, product: cst.BinaryOperation) -> bool:
    for x, call in ((product.left, product.right), (product.right, product.left)):
        if not isinstance(call, cst.Call) or _operation(program, call) != "sigmoid" or dotted(x) is None:
            continue
        given = call.args[0].value if call.args else receiver(call)
        if given is not None and dotted(given) == dotted(x):
            return True
    return False


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
    words=("tanh", "erf", "sigmoid"),
    visits=(Visit(cst.BinaryOperation, check),),
)
