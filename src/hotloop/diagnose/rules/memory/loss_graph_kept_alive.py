"""Tensors of past steps are kept with their graphs.

## What it does
Compares the lists, dictionaries and deques that the program's variables and attributes name, some steps apart, and
finds those that gained an entry in half of the steps or more whose tensor still has its graph.

## Why it is slow
Each entry keeps the graph of its step, with what of it no backward has freed. Memory grows until the device, or the
machine, is full (an error where it was seen to grow); summing up such a list makes a graph over all of them.

## When it is fine
Outputs that are gathered over some steps and differentiated together, and then let go.

## Example
```python
losses.append(loss)
```
Use instead:
```python
losses.append(loss.detach())
```

## References
- [PyTorch, FAQ: my model reports out of memory](https://docs.pytorch.org/docs/stable/notes/faq.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.diagnose.rules.memory.memory_growing import grows
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation
from hotloop.model.quantities import average
from hotloop.observe.profile.container_line import growing_line


def check(observation: Observation) -> Iterator[Symptom]:
    """Take each container that keeps graphs."""
    if observation.deep is None or observation.deep.growing_containers is None:
        raise Abstain("the program's containers (a run without --no-deep and --full)")
    for holder in observation.deep.growing_containers:
        if holder.keeps_graph:
            yield Symptom(
                evidence=f"the {holder.kind} {holder.name} of {holder.function} gains "
                f"{average(holder.per_step, 'entry', 'entries')} a step, tensors with their graph",
                path=holder.path,
                line=growing_line(holder),
                severity=Severity.ERROR if grows(observation) else Severity.WARNING,
            )


rule = Rule(
    code="loss-graph-kept-alive",
    title="Tensors of past steps are kept with their graphs",
    advice="Keep numbers or detached tensors: loss.item(), output.detach().",
    explains=frozenset({"memory-growing", "steps-get-longer"}),
    page=__doc__ or "",
    check=check,
)
