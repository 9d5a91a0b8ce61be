"""A convolution adds a bias that batch norm takes away again.

## What it does
Finds a convolution with a bias directly followed by batch norm of the same dimension: neighbours in
`nn.Sequential`, and `self.bn(self.conv(x))` in a `forward`.

## Why it is slow
Batch norm subtracts the mean of each channel, and the bias with it. Adding it and summing its gradient reads
and writes the whole activation for nothing.

## When it is fine
The weights come from a checkpoint that holds the biases. The fix is unsafe because saved parameters change.

## Example
```python
nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64))
```
Use instead:
```python
nn.Sequential(nn.Conv2d(3, 64, 3, bias=False), nn.BatchNorm2d(64))
```

## References
- PyTorch, Performance Tuning Guide: disable bias for convolutions directly followed by a batch norm:
  https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
"""

from collections.abc import Iterator
from itertools import pairwise

import libcst as cst

from hotloop.lint.infer.names import dotted
from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import argument, has_star, is_literal
from hotloop.lint.rule import Edit, Hit, Rule, Visit
from hotloop.model.finding import Severity
from hotloop.model.safety import Safety
from hotloop.source.calls import with_argument


def check_sequence(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find the pair as neighbours in a Sequential or a list of layers."""
    if program.names.call(call) == "torch.nn.Sequential":
        yield from _neighbours(program, [arg.value for arg in call.args])


def check_list(program: Program, layers: cst.List) -> Iterator[Hit]:
    """Find the pair as neighbours in a list literal."""
    yield from _neighbours(program, [element.value for element in layers.elements])


def _neighbours(program: Program, layers: list[cst.BaseExpression]) -> Iterator[Hit]:
    for first, second in pairwise(layers):
        if isinstance(first, cst.Call) and _is_pair(program, first, second):
            yield _hit(program, first)


def check_forward(program: Program, outer: cst.Call) -> Iterator[Hit]:
    """Find `self.bn(self.conv(x))`."""
    inner = outer.args[0].value if len(outer.args) == 1 else None
    if not isinstance(inner, cst.Call):
        return
    yield from _called_in_turn(program, outer, inner)


def check_block(program: Program, block: cst.IndentedBlock) -> Iterator[Hit]:
    """Find `x = self.conv(x)` and `x = self.bn(x)` as neighbours."""
    for first, second in pairwise(block.body):
        conv, norm = _self_call(first), _self_call(second)
        if conv is None or norm is None or conv[0] != norm[0] or dotted(norm[1].args[0].value) != conv[0]:
            continue
        yield from _called_in_turn(program, norm[1], conv[1])


def _self_call(statement: cst.CSTNode) -> tuple[str, cst.Call] | None:
    """The name and the call of `name = self.layer(argument)`."""
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    if (
        not isinstance(small, cst.Assign)
        or not isinstance(small.value, cst.Call)
        or len(small.value.args) != 1
    ):
        return None
    name = dotted(small.targets[0].target)
    is_layer = (dotted(small.value.func) or "").startswith("self.")
    return (name, small.value) if name is not None and is_layer else None


def _called_in_turn(program: Program, outer: cst.Call, inner: cst.Call) -> Iterator[Hit]:
    norm, conv = dotted(outer.func) or "", dotted(inner.func) or ""
    owner = program.file.enclosing(outer, cst.ClassDef)
    if owner is None or not (norm.startswith("self.") and conv.startswith("self.")):
        return
    made = {dotted(a.targets[0].target): a.value for a in program.file.under(owner, cst.Assign)}
    first, second = made.get(conv), made.get(norm)
    if isinstance(first, cst.Call) and second is not None and _is_pair(program, first, second):
        yield _hit(program, first)


def _is_pair(program: Program, conv: cst.Call, norm: cst.BaseExpression) -> bool:
    full, other = program.names.call(conv), program.names.call(norm)
    for dim in ("1d", "2d", "3d"):
        if (
            full in {f"torch.nn.Conv{dim}", f"torch.nn.ConvTranspose{dim}"}
            and other == f"torch.nn.BatchNorm{dim}"
        ):
            return not has_star(conv) and _has_bias(conv)
    return False


def _has_bias(conv: cst.Call) -> bool:
    # Both take bias as the eighth argument: it stands after groups, or after output_padding and groups.
    bias = argument(conv, 7, "bias")
    return bias is None or is_literal(bias, "True")


def _hit(program: Program, conv: cst.Call) -> Hit:
    name = program.names.call(conv).rpartition(".")[2]
    return Hit(
        conv,
        f"{name} with a bias, then batch norm",
        edits=(Edit(conv, with_argument(conv, "bias", "False", 7)),),
    )


rule = Rule(
    code="conv-bias-before-batch-norm",
    title="A convolution's bias is cancelled by batch norm",
    severity=Severity.WARNING,
    advice="Give the convolution bias=False.",
    optimization="conv_bias_off",
    fix=Safety.UNSAFE,
    page=__doc__,
    words=("BatchNorm",),
    visits=(
        Visit(cst.Call, check_sequence),
        Visit(cst.List, check_list),
        Visit(cst.Call, check_forward),
        Visit(cst.IndentedBlock, check_block),
    ),
)
