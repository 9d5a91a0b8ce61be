"""Anomaly detection is on.

## What it does
Finds `torch.autograd.set_detect_anomaly(True)`, `with torch.autograd.detect_anomaly():` and
`Trainer(detect_anomaly=True)`.

## Why it is slow
Each forward operation records its Python stack, and each backward result is searched for NaN, which makes the
host wait. A step was measured three times slower.

## When it is fine
While a NaN is being hunted. The rule says nothing where a variable decides.

## Example
```python
torch.autograd.set_detect_anomaly(True)
```
Use instead:
```python
torch.autograd.set_detect_anomaly(False)
```

## References
- [PyTorch, Anomaly detection](https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection)
- PyTorch, Performance Tuning Guide: disable debugging APIs:
  https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.guards import is_switched
from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import argument, is_literal, keyword
from hotloop.lint.rule import Edit, Hit, Rule, Visit
from hotloop.model.finding import Severity
from hotloop.model.safety import Safety
from hotloop.source.calls import with_argument


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find anomaly detection that is switched on."""
    full = program.names.call(call)
    if is_switched(program.file, call):
        return
    if full == "torch.autograd.set_detect_anomaly":
        mode = argument(call, 0, "mode")
        if is_literal(mode, "True") and mode is not None:
            yield Hit(call, "set_detect_anomaly(True)", edits=(Edit(mode, cst.Name("False")),))
    elif full in {"torch.autograd.detect_anomaly", "torch.autograd.anomaly_mode.detect_anomaly"}:
        yield Hit(call, "detect_anomaly() around the work")
    elif full == "lightning.pytorch.Trainer" and is_literal(keyword(call, "detect_anomaly"), "True"):
        yield Hit(
            call,
            "Trainer(detect_anomaly=True)",
            edits=(Edit(call, with_argument(call, "detect_anomaly", "False")),),
        )


rule = Rule(
    code="anomaly-mode-on",
    title="Anomaly detection is left on",
    severity=Severity.WARNING,
    advice="Switch it on only while looking for a NaN.",
    optimization="debug_apis_off",
    fix=Safety.SAFE,
    page=__doc__,
    words=("detect_anomaly",),
    visits=(Visit(cst.Call, check),),
)
