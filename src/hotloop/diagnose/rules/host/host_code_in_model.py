"""The model's forward runs code of the host that is no tensor's.

## What it does
Samples the stacks of the training thread and finds lines of the program's own, in the forward of a module, that spend
their time in NumPy, SciPy, PIL, pandas, sockets, files or sleep.

## Why it is slow
On a device the values come to the host first, and the device waits until they are back; on a CPU it is work of one
thread beside the kernels' many. Nothing of it can be compiled or captured.

## When it is fine
A model that needs a result which tensors cannot give (an assignment problem), once a step.

## Example
```python
def hook(layer, inputs, output):
    kept.values = np.concatenate([kept.values, output.detach().numpy()])
```
Use instead:
```python
def hook(layer, inputs, output):
    kept.mean.lerp_(output.detach().mean(0), 0.01)
```

## References
- [PyTorch, Performance Tuning Guide, Avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from hotloop.diagnose.lines.hot_line import calls_a_module, sampled_share, samples_of
from hotloop.diagnose.price.cost import MIDWAY, measured_step
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.deep import Frame
from hotloop.model.observation import Observation, Phase
from hotloop.model.quantities import duration
from hotloop.observe.profile.parsed_sources import parsed, statement_at

_MODULES = frozenset(
    {
        "numpy", "scipy", "PIL", "cv2", "skimage", "sklearn", "pandas", "matplotlib",
        "json", "pickle", "random", "time", "socket", "requests", "urllib", "io", "os", "shutil", "subprocess",
    }
)  # fmt: skip
_OF_NUMBERS = frozenset(
    {
        "sqrt", "log", "log2", "exp", "prod", "ceil", "floor", "pi", "random", "randint", "uniform", "choice",
        "time", "perf_counter", "monotonic", "join", "float32", "float64", "int64",
    }
)  # fmt: skip
"""Functions of a number or a shape: nothing beside the tensors' work on the same line."""
LEAST = 0.02
"""Of the samples: lines with less are not looked up in their files."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Name the lines."""
    host, own = samples_of(observation, "train")
    spent: Counter[tuple[str, int]] = Counter()
    for sample in own:
        frames = [host.frames[number] for number in sample.stack]
        place = _place(frames) if sample.phase == Phase.FORWARD.value else None
        if place is not None:
            spent[place] += round(sample.spent_s * 1e6)
    whole = sum(sample.spent_s for sample in own) * 1e6
    for (path, line), of_it in spent.items():
        name = _host_module(path, line) if of_it >= LEAST * whole else None
        if name is not None:
            cost = sampled_share(
                of_it / whole, sum(sample.num for sample in own), measured_step(observation).whole_s
            )
            yield Symptom(
                evidence=f"{cost.share:.0%} of the step ({duration(cost.seconds[0])}) is spent under this line of "
                f"the model, which calls {name}",
                path=path,
                line=line,
                cost=cost,
                gain=cost.gain(expected=MIDWAY),
            )


def _place(frames: list[Frame]) -> tuple[str, int] | None:
    """Return the user's line that a sample in a module ends in, without torch below it; None: there is none."""
    if not any(calls_a_module(frame) for frame in frames):
        return None
    for frame in reversed(frames):
        if frame.owner == "user":
            return frame.path, frame.line
        if frame.owner != "library":
            return None
    return None


def _host_module(path: str, line: int) -> str | None:
    """Return the module of the host's that the statement at a line calls; None: it calls none."""
    tree = parsed(path)
    statement = statement_at(tree, line) if tree is not None else None
    if tree is None or statement is None:
        return None
    known = dict(_imported(tree))
    calls = [node.func for node in ast.walk(statement) if isinstance(node, ast.Call)]
    called = [_root(func) for func in calls if getattr(func, "attr", None) not in _OF_NUMBERS]
    modules = (known[name] for name in called if name in known)
    return next((module for module in modules if module in _MODULES), None)


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield each imported name with its module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                yield (one.asname or one.name).split(".")[0], one.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module:
            for one in node.names:
                yield one.asname or one.name, node.module.split(".")[0]


def _root(called: ast.expr) -> str | None:
    while isinstance(called, ast.Attribute):
        called = called.value
    return called.id if isinstance(called, ast.Name) else None


rule = Rule(
    code="host-code-in-model",
    title="The model's forward runs code of the host",
    advice="Use tensors, or run it outside the model every N steps.",
    page=__doc__ or "",
    check=check,
)
