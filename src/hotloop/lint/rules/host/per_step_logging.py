"""Something is logged in every step.

## What it does
Finds calls to TensorBoard writers, MLflow, Weights & Biases and `print` that run in each training step, and
`logging_steps=1` of the Hugging Face trainer, `log_every_n_steps=1` of Lightning's. Histograms, images, and
writers that go over the network are a warning; the rest is information.

## Why it is slow
A histogram copies whole tensors to the host and sorts them; MLflow makes a request; a scalar costs a
synchronization when it is a tensor. A terminal that scrolls costs the step as well.

## When it is fine
Steps of a second and more, or a handful of steps.

## Example
```python
for step, (x, y) in enumerate(loader):
    loss.backward(); optimizer.step()
    writer.add_histogram("weights", model.weight, step)
```
Use instead:
```python
    if step % 100 == 0:
        writer.add_histogram("weights", model.weight, step)
```

## References
- [PyTorch, Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.name_lists import words
from hotloop.lint.read.syntax import integer, keyword, method
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity

_DEAR = words(
    """
    add_histogram add_image add_images add_figure add_video add_embedding add_pr_curve add_graph
    """
)
_NETWORK = frozenset({"mlflow.log_metric", "mlflow.log_metrics", "mlflow.log_artifact"})
_CHEAP = frozenset({"wandb.log", "print"})


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find logging in the step."""
    for option in ("logging_steps", "log_every_n_steps"):
        if integer(keyword(call, option)) == 1:
            yield Hit(call, f"{option} is 1", Severity.INFO)
            return
    name = (
        program.names.call(call)
        or method(call)
        or (call.func.value if isinstance(call.func, cst.Name) else "")
    )
    if name not in _DEAR | _NETWORK | _CHEAP | {
        "add_scalar",
        "add_scalars",
    } or not program.steps.in_step_loop(call):
        return
    yield Hit(call, f"{name} in each step", None if name in _DEAR | _NETWORK else Severity.INFO)


rule = Rule(
    code="per-step-logging",
    title="Every step is logged",
    severity=Severity.WARNING,
    advice="Log every N steps.",
    holds_its_cost=True,
    page=__doc__,
    words=("backward", "training_step", "logging_steps", "log_every_n_steps"),
    visits=(Visit(cst.Call, check),),
)
