"""Each step searches the graph for parameters without a gradient.

## What it does
Finds `find_unused_parameters=True`, the Hugging Face option `ddp_find_unused_parameters=True`, and the
Lightning strategy `"ddp_find_unused_parameters_true"`.

## Why it is slow
After each forward pass DDP walks the whole autograd graph, and waits for a collective to agree on what was
used.

## When it is fine
Some parameters really get no gradient in some steps: then it is needed. torch warns when none was unused.

## Example
```python
model = DistributedDataParallel(model, find_unused_parameters=True)
```
Use instead:
```python
model = DistributedDataParallel(model)
```

## References
- PyTorch, Performance Tuning Guide: match the order of layers in constructors:
  https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
- PyTorch, DistributedDataParallel:
  https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.names import dotted
from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import is_literal, keyword, string
from hotloop.lint.rule import Edit, Hit, Rule, Visit
from hotloop.model.finding import Severity
from hotloop.model.safety import Safety
from hotloop.source.calls import without_argument

_WRAPPERS = ("DistributedDataParallel", "DDP", "DDPStrategy", "DistributedDataParallelKwargs")


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find the search switched on."""
    name = (program.names.call(call) or dotted(call.func) or "").rpartition(".")[2]
    if name in _WRAPPERS and is_literal(keyword(call, "find_unused_parameters"), "True"):
        edit = Edit(call, without_argument(call, "find_unused_parameters"))
        yield Hit(call, "find_unused_parameters=True", edits=(edit,))
    elif is_literal(keyword(call, "ddp_find_unused_parameters"), "True"):
        yield Hit(call, "ddp_find_unused_parameters=True")
    elif string(keyword(call, "strategy")) == "ddp_find_unused_parameters_true":
        edit = Edit(call, call.with_deep_changes(keyword(call, "strategy"), value='"ddp"'))  # type: ignore[arg-type]
        yield Hit(call, 'strategy="ddp_find_unused_parameters_true"', edits=(edit,))


rule = Rule(
    code="find-unused-parameters-on",
    title="Each step searches for unused parameters",
    severity=Severity.WARNING,
    advice="Leave it out; if torch then complains, match the model to what it uses.",
    fix=Safety.UNSAFE,
    page=__doc__,
    words=("find_unused_parameters",),
    visits=(Visit(cst.Call, check),),
)
