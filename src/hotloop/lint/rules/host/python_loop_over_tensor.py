"""A Python loop goes over the rows or elements of a tensor.

## What it does
Finds, in code that runs in each step, a `for` loop over a tensor, or over `range(len(t))`,
`range(t.size(0))`, `range(t.shape[0])` that indexes a tensor with its counter (also in a comprehension), when
the turns do not depend on one another: each only adds to a sum, appends to a list or fills a place.

## Why it is slow
Each turn launches kernels for a single row; a launch costs some microseconds of host time whatever its size.
One operation on the whole tensor costs one launch, forward and backward.

## When it is fine
Each turn needs the last one's result (recurrence); the rule leaves such loops out.

## Example
```python
loss = 0
for i in range(len(output)):
    loss += ((output[i] - target[i]) ** 2).mean()
```
Use instead:
```python
loss = ((output - target) ** 2).mean(dim=1).sum()
```

## References
- [PyTorch, Broadcasting semantics](https://docs.pytorch.org/docs/stable/notes/broadcasting.html)
- [PyTorch, torch.vmap](https://docs.pytorch.org/docs/stable/generated/torch.vmap.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.kinds import Kind
from hotloop.lint.infer.names import dotted
from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import method, receiver
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity
from hotloop.source.carried import as_ast, carries

_TENSORS = frozenset({Kind.TENSOR, Kind.HOST_TENSOR})


def check(program: Program, loop: cst.For) -> Iterator[Hit]:
    """Find loops over tensors that an array operation could replace."""
    seen = _over_tensor(program, loop) or _over_places(program, loop)
    if not seen or not program.steps.runs_each_step(loop):
        return
    if _holds_training(program, loop) or carries(as_ast(loop)) or _calls_modules(program, loop):
        return
    yield Hit(loop, seen)


def check_comprehension(program: Program, comprehension: cst.GeneratorExp | cst.ListComp) -> Iterator[Hit]:
    """Find sums and lists over the rows of a tensor, inside a call."""
    head = comprehension.for_in
    counter = head.target.value if isinstance(head.target, cst.Name) else ""
    if not counter or head.inner_for_in is not None or not program.steps.runs_each_step(comprehension):
        return
    indexed = _indexed(program, comprehension.elt, head.iter, counter)
    if indexed and program.file.under(comprehension.elt, cst.Call):
        yield Hit(comprehension, indexed)


def _over_tensor(program: Program, loop: cst.For) -> str:
    iterable = loop.iter
    if (
        isinstance(iterable, cst.Call)
        and isinstance(iterable.func, cst.Name)
        and iterable.func.value == "enumerate"
    ):
        iterable = iterable.args[0].value if iterable.args else iterable
    parts = [iterable]
    if (
        isinstance(iterable, cst.Call)
        and isinstance(iterable.func, cst.Name)
        and iterable.func.value == "zip"
    ):
        parts = [arg.value for arg in iterable.args]
    return (
        "the loop takes a tensor row by row" if any(program.values.kind(p) in _TENSORS for p in parts) else ""
    )


def _over_places(program: Program, loop: cst.For) -> str:
    return (
        _indexed(program, loop.body, loop.iter, loop.target.value)
        if isinstance(loop.target, cst.Name)
        else ""
    )


def _indexed(program: Program, body: cst.CSTNode, iterable: cst.BaseExpression, counter: str) -> str:
    """Whether the body takes row after row of a tensor as long as the range."""
    if not isinstance(iterable, cst.Call) or dotted(iterable.func) != "range" or len(iterable.args) != 1:
        return ""
    sized = _sized(iterable.args[0].value)
    for subscript in program.file.under(body, cst.Subscript):
        first = subscript.slice[0].slice
        if not isinstance(first, cst.Index) or dotted(first.value) != counter:
            continue
        if sized is not None and _is_rows(program, subscript.value, sized):
            return f"a tensor is indexed with {counter}, one row at a time"
    return ""


def _is_rows(program: Program, indexed: cst.BaseExpression, sized: cst.BaseExpression) -> bool:
    kinds = {program.values.kind(indexed), program.values.kind(sized)}
    if kinds & _TENSORS:
        return True
    # A model's output that has a shape is a tensor; one that only has a length may be a list.
    has_shape = not isinstance(program.file.parent(sized), cst.Arg)
    return has_shape and bool(kinds & {Kind.TENSORS, Kind.BATCH}) and dotted(indexed) == dotted(sized)


def _sized(count: cst.BaseExpression) -> cst.BaseExpression | None:
    """`t` in `len(t)`, `t.size(0)`, `t.shape[0]`."""
    if isinstance(count, cst.Call):
        if dotted(count.func) == "len" and count.args:
            return count.args[0].value
        return receiver(count) if method(count) == "size" else None
    if isinstance(count, cst.Subscript) and isinstance(count.value, cst.Attribute):
        return count.value.value if count.value.attr.value == "shape" else None
    return None


def _holds_training(program: Program, loop: cst.For) -> bool:
    calls = [*program.steps.backward_calls, *program.steps.optimizer_steps]
    return any(program.file.inside(call, loop) for call in calls)


def _calls_modules(program: Program, loop: cst.For) -> bool:
    """A network inside the loop is another matter: its parts may differ from turn to turn."""
    return any(
        program.values.kind(call.func) is Kind.MODULE for call in program.file.under(loop.body, cst.Call)
    )


rule = Rule(
    code="python-loop-over-tensor",
    title="A Python loop goes over a tensor",
    severity=Severity.WARNING,
    advice="Write it as one operation on the whole tensor, or use torch.vmap.",
    optimization="vectorized_loop",
    holds_its_cost=True,
    page=__doc__,
    words=("backward", "scaler", "training_step", "compute_loss", "forward"),
    visits=(
        Visit(cst.For, check),
        Visit(cst.GeneratorExp, check_comprehension),
        Visit(cst.ListComp, check_comprehension),
    ),
)
