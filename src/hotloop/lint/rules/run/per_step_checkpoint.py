"""A checkpoint is written in every step.

## What it does
Finds `torch.save` (and `save_pretrained`, `save_checkpoint`, `accelerator.save_state`) in a training loop,
outside any branch.

## Why it is slow
All parameters and the optimizer's state are copied to the host, pickled and written, while the device waits.

## When it is fine
Steps of many minutes.

## Example
```python
for x, y in loader:
    loss_fn(model(x), y).backward()
    optimizer.step()
    torch.save(model.state_dict(), "last.pt")
```
Use instead:
```python
    if step % 1000 == 0:
        torch.save(model.state_dict(), "last.pt")
```

## References
- [PyTorch, Saving and loading models](https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import method
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity

_METHODS = frozenset({"save_pretrained", "save_checkpoint", "save_state"})


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find checkpoints written in each turn of a step loop."""
    full = program.names.call(call)
    if full != "torch.save" and (full or method(call) not in _METHODS):
        return
    loop = program.steps.loop_of(call)
    branch = program.file.enclosing(call, cst.If, cst.For, cst.While, cst.ExceptHandler)
    if loop is None or branch is not loop or not program.steps.in_step_loop(call):
        return
    if _is_batch_loop(program, loop):
        yield Hit(call, f"{full or method(call)} in each step")


def _is_batch_loop(program: Program, loop: cst.For | cst.While) -> bool:
    """A loop that counts epochs and trains on the whole set in one step may save in each turn."""
    head = [loop.target, loop.iter] if isinstance(loop, cst.For) else [loop.test]
    return not any("epoch" in program.file.module.code_for_node(part).lower() for part in head)


rule = Rule(
    code="per-step-checkpoint",
    title="A checkpoint is written in each step",
    severity=Severity.WARNING,
    advice="Save every N steps or once per epoch, if possible in another thread.",
    holds_its_cost=True,
    page=__doc__,
    words=("save",),
    visits=(Visit(cst.Call, check),),
)
