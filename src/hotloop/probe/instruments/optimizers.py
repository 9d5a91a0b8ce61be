"""The step of each optimizer on copies of its parameters: as it is, and fused.

The copies are made and dropped between two steps of the program. The optimizer's own parameters, its state and its
hooks are not touched.
"""

from __future__ import annotations

import inspect
import weakref
from collections import defaultdict
from collections.abc import Callable
from time import monotonic, perf_counter
from typing import Any

import torch

from hotloop.probe.instruments.instrument import Instrument
from hotloop.probe.probe import Probe
from hotloop.probe.record.facts import num_values

MAX_BYTES = 16 << 20
"""Of parameters that are copied; with gradients, and two states for each way, it is six times as much."""
ROUNDS, IN_A_ROW = 10, 3
SECONDS = 0.3
"""For the rounds of one optimizer, of which there are at least three."""
MIN_ROUNDS = 3
_VALUE = 1e-3
"""Of all numbers: none of them is denormal, and none overflows."""


class Optimizers(Instrument):
    """Looks which optimizers step, and times their copies.

    Args:
        probe: the probe.
    """

    min_steps = 1
    seconds = 0.0

    def __init__(self, probe: Probe) -> None:
        super().__init__(probe)
        self._seen: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()
        self._leave: Callable[[], None] = lambda: None

    def start(self) -> None:
        """See which optimizers step, and which parameters have gradients then."""
        from torch.optim.optimizer import register_optimizer_step_pre_hook

        self._leave = register_optimizer_step_pre_hook(self._steps).remove

    def stop(self) -> list[dict[str, Any]]:
        """Time the copies."""
        self._leave()
        return [row for optimizer, groups in list(self._seen.items()) for row in _row(optimizer, groups)]

    def step_aside(self) -> None:
        """Have no hook while torch.compile reads code."""
        self._leave()

    def after_fork(self) -> None:
        """Leave a forked child alone."""
        self._leave()

    def _steps(self, optimizer: Any, *_: Any) -> None:
        if optimizer not in self._seen:
            groups = [
                [one for one in group["params"] if one.grad is not None] for group in optimizer.param_groups
            ]
            self._seen[optimizer] = [
                [(weakref.ref(one), one.grad.is_sparse) for one in group] for group in groups
            ]


def _row(optimizer: Any, groups: list[Any]) -> list[dict[str, Any]]:
    """Return what the optimizer takes in both ways, in a list; empty: it is fused, or cannot be."""
    parameters = [[(ref(), sparse) for ref, sparse in group] for group in groups]
    known = [one for group in parameters for one in group]
    if not known or not _may_be_fused(optimizer) or any(one is None or sparse for one, sparse in known):
        return []
    every = 1 + sum(one.numel() * one.element_size() for one, _ in known) // MAX_BYTES
    chosen = [[one for one, _ in group][::every] for group in parameters]
    if sum(one.numel() * one.element_size() for group in chosen for one in group) > 2 * MAX_BYTES:
        return []
    copies = [[_parameter(one) for one in group] for group in chosen]
    now_s, fused_s = _times(_step(optimizer, copies, fused=False), _step(optimizer, copies, fused=True))
    everything = [one for group in optimizer.param_groups for one in group["params"]]
    return [
        {
            "cls": type(optimizer).__name__,
            "num_parameters": num_values(everything),
            "now_s": now_s,
            "fused_s": fused_s,
        }
    ]


def _may_be_fused(optimizer: Any) -> bool:
    torchs = type(optimizer).__module__.startswith("torch.optim.")
    return (
        torchs
        and "fused" in inspect.signature(type(optimizer)).parameters
        and not optimizer.defaults.get("fused")
    )


def _step(optimizer: Any, groups: list[list[Any]], *, fused: bool) -> Callable[[], Any]:
    """Return the step of an optimizer like it, on other parameters, without anybody's hooks."""
    cls = type(optimizer)
    like = cls.__new__(cls)
    like.__dict__.update(optimizer.__dict__)
    changes = {"fused": True, "foreach": False} if fused else {}
    like.state = defaultdict(dict)
    like.param_groups = [
        {**group, **changes, "params": parameters}
        for group, parameters in zip(optimizer.param_groups, groups, strict=True)
    ]
    step = cls.step.__wrapped__ if getattr(cls.step, "hooked", False) else cls.step
    return lambda: step(like)


def _parameter(like: Any) -> Any:
    with torch.no_grad():
        copy = torch.full_like(like, _VALUE, requires_grad=True)
        copy.grad = torch.full_like(like, _VALUE)
    return copy


def _times(now: Callable[[], Any], fused: Callable[[], Any]) -> tuple[float, float]:
    """Return the quickest step of each: whatever else runs only makes them slower."""
    best = [float("inf"), float("inf")]
    began = monotonic()
    for round_ in range(ROUNDS + 1):
        for way, step in enumerate((now, fused)):
            spent = min(_timed(step) for _ in range(IN_A_ROW))
            if round_:  # the first makes the state
                best[way] = min(best[way], spent)
        if round_ >= MIN_ROUNDS and monotonic() - began > SECONDS:
            break
    return best[0], best[1]


def _timed(step: Callable[[], Any]) -> float:
    _wait()
    began = perf_counter()
    step()
    _wait()
    return perf_counter() - began


def _wait() -> None:
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
