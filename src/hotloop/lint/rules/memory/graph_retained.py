"""The graph is kept after the only backward pass.

## What it does
Finds `backward(retain_graph=True)` where the step has no other backward call and no second use of the graph.

## Why it is slow
The buffers of the forward pass are freed only when the last reference goes, so two steps' activations can be
in memory at once.

## When it is fine
The graph is differentiated again: several losses, higher derivatives, state carried over steps. The rule says
nothing where it sees a second backward call or `create_graph`.

## Example
```python
loss.backward(retain_graph=True)
optimizer.step()
```
Use instead:
```python
loss.backward()
optimizer.step()
```

## References
- [PyTorch, Tensor.backward](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import is_literal, keyword
from hotloop.lint.rule import Edit, Hit, Rule, Visit
from hotloop.model.finding import Severity
from hotloop.model.safety import Safety
from hotloop.source.calls import without_argument


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find graphs retained for nothing that is visible."""
    if not is_literal(keyword(call, "retain_graph"), "True") or call not in program.steps.backward_calls:
        return
    if (
        len(program.steps.backward_calls) > 1
        or "create_graph" in program.file.text
        or "autograd.grad" in program.file.text
    ):
        return
    if program.steps.in_step_loop(call):
        yield Hit(
            call,
            "the step's only backward call retains the graph",
            edits=(Edit(call, without_argument(call, "retain_graph")),),
        )


rule = Rule(
    code="graph-retained",
    title="The graph is kept after the only backward pass",
    severity=Severity.WARNING,
    advice="Leave retain_graph out; if torch then complains, detach what is carried over steps.",
    fix=Safety.UNSAFE,
    page=__doc__,
    words=("retain_graph",),
    visits=(Visit(cst.Call, check),),
)
