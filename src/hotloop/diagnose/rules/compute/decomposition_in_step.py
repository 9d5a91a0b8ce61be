"""A matrix decomposition takes much of the step.

## What it does
Finds the operators of linear algebra that are no products (singular values, eigenvalues, inverses, determinants) among
those of a step, and the line of the program's own that calls them, in the samples of the host's stacks. The backward of
what the line puts into the graph counts.

## Why it is slow
A decomposition takes ten to a hundred times as long as a product of matrices of the same size, and most of its
algorithm runs on one thread; small ones on a device are faster on the CPU.

## When it is fine
Where the method needs the exact result in every step. A penalty, a whitening or a preconditioner seldom does: its
matrices change little from step to step.

## Example
```python
penalty = torch.linalg.svdvals(layer.weight)[0]
```
Use instead:
```python
layer = torch.nn.utils.parametrizations.spectral_norm(layer)  # one step of power iteration
```

## References
- [PyTorch, torch.nn.utils.parametrizations.spectral_norm](https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.parametrizations.spectral_norm.html)
- [PyTorch, torch.linalg.inv: prefer solve](https://docs.pytorch.org/docs/stable/generated/torch.linalg.inv.html)
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.lines.hot_line import samples_of
from hotloop.diagnose.lines.line_price import line_price
from hotloop.diagnose.price.cost import LEAST
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.deep import Frame
from hotloop.model.observation import Observation
from hotloop.model.quantities import duration
from hotloop.observe.profile.parsed_sources import parsed, statement_at

_OPERATORS = ("aten::linalg_", "aten::_linalg_", "aten::geqrf", "aten::cholesky")
_ELEMENTWISE = frozenset({"aten::linalg_vector_norm", "aten::linalg_cross", "aten::linalg_vecdot"})
_CALLS = frozenset(
    {
        "svd", "svdvals", "svd_lowrank", "pca_lowrank", "pinv", "pinverse", "eig", "eigvals", "eigh", "eigvalsh",
        "inv", "inv_ex", "inverse", "solve", "lstsq", "qr", "cholesky", "cholesky_ex", "cholesky_inverse", "lu",
        "lu_factor", "det", "logdet", "slogdet", "matrix_norm", "norm", "matrix_rank", "cond", "matrix_exp",
        "nuclear_norm",
    }
)  # fmt: skip
"""Functions of torch that decompose a matrix, or do for some arguments."""
TENTH = 0.9
"""Of the cost, what is saved where the decomposition is computed every ten steps, or replaced by power iteration."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Name the line that holds most of them."""
    operators = observation.deep.operators if observation.deep else None
    if operators is None:
        raise Abstain("the operators of a step (a run without --no-deep)")
    seen = [
        one for one in operators.operators if one.name.startswith(_OPERATORS) and one.name not in _ELEMENTWISE
    ]
    if sum(one.share for one in seen) < LEAST:
        return
    place = _most(observation)
    if place is None:
        return
    path, line = place
    price = line_price(observation, path, range(line, line + 1))
    name = max(seen, key=lambda one: one.share).name.removeprefix("aten::")
    yield Symptom(
        evidence=f"{price.own.share:.0%} of the step ({duration(price.own.seconds[0])}) is spent under this line, "
        f"which decomposes matrices ({name}), and {price.cost.share - price.own.share:.0%} in its backward",
        path=path,
        line=line,
        cost=price.cost,
        gain=price.cost.gain(expected=TENTH),
    )


def _most(observation: Observation) -> tuple[str, int] | None:
    """Return the line in which most of the samples of decompositions are; None: no line of the user's calls one."""
    host, own = samples_of(observation, "train")
    spent: Counter[tuple[str, int]] = Counter()
    for sample in own:
        place = _innermost([host.frames[number] for number in sample.stack])
        if place is not None:
            spent[place] += round(sample.spent_s * 1e6)
    calling = [place for place, _ in spent.most_common() if _decomposes(*place)]
    return calling[0] if calling else None


def _innermost(frames: list[Frame]) -> tuple[str, int] | None:
    """Return the user's line that a sample ends in, torch's frames above it left out; None: it ends elsewhere."""
    at = next((frame for frame in reversed(frames) if frame.owner != "torch"), None)
    return (at.path, at.line) if at is not None and at.owner == "user" else None


def _decomposes(path: str, line: int) -> bool:
    tree = parsed(path)
    statement = statement_at(tree, line) if tree is not None else None
    calls = [node.func for node in ast.walk(statement) if isinstance(node, ast.Call)] if statement else []
    return any(getattr(one, "attr", getattr(one, "id", None)) in _CALLS for one in calls)


rule = Rule(
    code="decomposition-in-step",
    title="A matrix decomposition takes much of the step",
    advice="Compute it every N steps, or what is cheaper: power iteration (spectral_norm) for the largest singular "
    "value, a solve in place of an inverse.",
    explains=frozenset({"hot-line-before-backward"}),
    page=__doc__ or "",
    check=check,
)
