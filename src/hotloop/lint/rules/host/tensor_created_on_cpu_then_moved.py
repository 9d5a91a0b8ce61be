"""A tensor is made in host memory and then copied to the device, in every step.

## What it does
Finds `torch.zeros(...).to(device)`, `.cuda()` and their relatives (`ones`, `empty`, `full`, `arange`,
`linspace`, `eye`, `rand`, `randn`, `randint`, `randperm`) in code that runs in each training step.

## Why it is slow
The host fills the memory, then a copy from pageable memory stops it until the transfer is done. Made on the
device the same tensor is one kernel launch.

## When it is fine
A generator on the host must give the same random numbers on every device. The fix is offered as safe only
where no random numbers are drawn.

## Example
```python
mask = torch.zeros(n, n).to(device)
```
Use instead:
```python
mask = torch.zeros(n, n, device=device)
```

## References
- PyTorch, Performance Tuning Guide: create tensors directly on the target device:
  https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.moves import moves_to_device
from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import has_star, keyword, receiver
from hotloop.lint.rule import Edit, Hit, Rule, Visit
from hotloop.model.finding import Severity
from hotloop.model.safety import Safety
from hotloop.source.calls import with_argument

_FIXED = frozenset({"zeros", "ones", "empty", "full", "arange", "linspace", "eye"})
_HOST_ONLY = ("out", "pin_memory", "requires_grad")
"""What a factory on the device refuses, or where the tensor that is moved is not the one that is made."""
_RANDOM = frozenset({"rand", "randn", "randint", "randperm", "normal"})


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find factories whose result is moved at once."""
    made = receiver(call)
    if not moves_to_device(call) or not isinstance(made, cst.Call) or has_star(made):
        return
    factory = program.names.call(made)
    name = factory.rpartition(".")[2]
    if factory != f"torch.{name}" or name not in _FIXED | _RANDOM or keyword(made, "device") is not None:
        return
    if program.steps.runs_each_step(call):
        safety = Safety.SAFE if name in _FIXED else Safety.UNSAFE
        yield Hit(
            call,
            f"{factory} fills host memory, which is then copied",
            edits=_edits(call, made),
            safety=safety,
        )


def _edits(call: cst.Call, made: cst.Call) -> tuple[Edit, ...]:
    """Move the device into the factory call, where the move says nothing but the device."""
    if any(arg.keyword is not None for arg in call.args) or len(call.args) > 1:
        return ()
    if any(keyword(made, name) is not None for name in _HOST_ONLY):
        return ()
    device = cst.Module([]).code_for_node(call.args[0].value) if call.args else '"cuda"'
    if isinstance(
        call.args[0].value if call.args else None, (cst.Attribute, cst.Name, cst.SimpleString, type(None))
    ):
        return (Edit(call, with_argument(made, "device", device)),)
    return ()


rule = Rule(
    code="tensor-created-on-cpu-then-moved",
    title="A tensor is made on the host and then moved, in each step",
    severity=Severity.WARNING,
    advice="Give the factory device=...",
    optimization="created_on_device",
    fix=Safety.SAFE,
    holds_its_cost=True,
    page=__doc__,
    words=(").to(", ").cuda("),
    visits=(Visit(cst.Call, check),),
)
