# ruff: noqa: ARG001, ARG005 - what stands in for a function has its signature
"""Changes that break the training in ways that speed-ups were seen to: none of them may pass."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.optim import Optimizer
from torch.optim.optimizer import (
    _global_optimizer_pre_hooks,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils.data import dataloader

from benchmarks.parity.warm import Change

STALE_STEPS = 8
LATE = 40
"""Steps after which the late ones begin."""


def _before_step(act: Callable[[Optimizer, int], None]) -> Callable[[], None]:
    """Act before every optimizer step, which is counted from 0, and before all else that looks at gradients."""

    def install() -> None:
        handle = register_optimizer_step_pre_hook(_counted(act))
        _global_optimizer_pre_hooks.move_to_end(handle.id, last=False)

    return install


def _after_step(act: Callable[[Optimizer, int], None]) -> Callable[[], None]:
    """Act after every optimizer step."""

    def install() -> None:
        register_optimizer_step_post_hook(_counted(act))

    return install


def _counted(act: Callable[[Optimizer, int], None]) -> Any:
    counts: dict[int, int] = {}

    def step(optimizer: Optimizer, *_: object) -> None:
        count = counts[id(optimizer)] = counts.get(id(optimizer), -1) + 1
        with torch.no_grad():
            act(optimizer, count)

    return step


def _parameters(optimizer: Optimizer) -> list[Any]:
    return [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]


def _rate(factor: float) -> Callable[[], None]:
    """Another learning rate in every step, whoever sets it: a scheduler, or the program itself."""

    def times(size: float) -> Callable[[Optimizer, int], None]:
        def act(optimizer: Optimizer, _: int) -> None:
            for group in optimizer.param_groups:
                group["lr"] *= size

        return act

    def install() -> None:
        _before_step(times(factor))()
        _after_step(times(1 / factor))()

    return install


def _frozen_layer(optimizer: Optimizer, _: int) -> None:
    largest = max(_parameters(optimizer), key=lambda p: p.numel())
    largest.grad = None


def _frozen_biases(optimizer: Optimizer, _: int) -> None:
    for parameter in _parameters(optimizer):
        if parameter.dim() < 2:
            parameter.grad = None


def _frozen_late(optimizer: Optimizer, count: int) -> None:
    if count >= LATE:
        for parameter in _parameters(optimizer):
            parameter.grad.zero_()


def _underflow(optimizer: Optimizer, _: int) -> None:
    """fp16 without scaling, on gradients as small as those of large models: what is below 2^-24 is 0."""
    for parameter in _parameters(optimizer):
        scale = 2.0**-22 / parameter.grad.abs().mean().clamp_min(1e-30)
        parameter.grad.copy_((parameter.grad * scale).half().float() / scale)


def _forgetful(optimizer: Optimizer, _: int) -> None:
    """The optimizer's state is lost in every step."""
    for parameter in _parameters(optimizer):
        for name, value in optimizer.state[parameter].items():
            if isinstance(value, torch.Tensor) and name != "step":
                value.zero_()


def _bf16_weights(optimizer: Optimizer, _: int) -> None:
    """No master weights: small updates are rounded away."""
    for parameter in _parameters(optimizer):
        parameter.copy_(parameter.bfloat16().float())


def _late_nan(optimizer: Optimizer, count: int) -> None:
    if count == LATE:
        _parameters(optimizer)[0].fill_(float("nan"))


def _noise(optimizer: Optimizer, _: int) -> None:
    """A race: a tenth of the gradient's elements belong to somebody else."""
    for parameter in _parameters(optimizer):
        flat = parameter.grad.view(-1)
        chosen = torch.randperm(len(flat))[: max(1, len(flat) // 10)]
        flat[chosen] = flat[chosen].flip(0) * 3


class _Stale:
    """Gradients of some steps ago steer, as a deferred value or a buffer that was not refreshed does."""

    def __init__(self) -> None:
        self._kept: dict[int, list[Any]] = {}

    def __call__(self, optimizer: Optimizer, _: int) -> None:
        for parameter in _parameters(optimizer):
            kept = self._kept.setdefault(id(parameter), [])
            kept.append(parameter.grad.clone())
            if len(kept) > STALE_STEPS:
                parameter.grad.copy_(kept.pop(0))


def _gradients_kept() -> None:
    def keep(self: Any, set_to_none: bool = True) -> None:
        return None

    Optimizer.zero_grad = keep  # type: ignore[method-assign, assignment]
    nn.Module.zero_grad = keep  # type: ignore[method-assign, assignment]


def _no_dropout() -> None:
    functional.dropout = lambda input, *args, **kwargs: input
    nn.Dropout.forward = lambda self, input: input  # type: ignore[method-assign]


def _repeated_dropout() -> None:
    """One mask for each shape, drawn once: what a graph that is replayed without its generator does."""
    masks: dict[Any, Any] = {}

    def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        if not training or not p:
            return input
        if input.shape not in masks:
            masks[input.shape] = (torch.rand_like(input) >= p) / (1 - p)
        return input * masks[input.shape]

    functional.dropout = dropout


def _stale_weights() -> None:
    """Weights that were laid out anew for a kernel, and are not laid out again when they change."""
    for kind in (nn.Linear, nn.Conv2d, nn.ConvTranspose2d):
        kind.forward = _with_stale_weight(kind.forward)  # type: ignore[method-assign]


def _with_stale_weight(original: Callable[..., Any]) -> Callable[..., Any]:
    kept: dict[int, tuple[int, Any]] = {}

    @functools.wraps(original)
    def forward(self: Any, *args: Any) -> Any:
        calls, stale = kept.get(id(self), (0, None))
        if not calls % 20:
            stale = self.weight.detach().clone()
        kept[id(self)] = calls + 1, stale
        fresh = self._parameters.pop("weight")
        self.weight = fresh + (stale - fresh).detach()  # gradients are those of the weight
        try:
            return original(self, *args)
        finally:
            del self.weight
            self._parameters["weight"] = fresh

    return forward


def _frozen_statistics() -> None:
    original = functional.batch_norm

    def batch_norm(
        input: Any,
        mean: Any,
        var: Any,
        weight: Any = None,
        bias: Any = None,
        training: bool = False,
        *rest: Any,
        **kwargs: Any,
    ) -> Any:
        kwargs.pop("training", None)
        return original(input, mean, var, weight, bias, False, *rest, **kwargs)

    functional.batch_norm = batch_norm


def _shuffled_labels() -> None:
    for name in ("cross_entropy", "nll_loss", "mse_loss", "binary_cross_entropy"):
        original = getattr(functional, name)

        def shuffled(input: Any, target: Any, *args: Any, original: Any = original, **kwargs: Any) -> Any:
            return original(input, target[torch.randperm(len(target))], *args, **kwargs)

        setattr(functional, name, shuffled)


def _shifted_labels() -> None:
    """Every sample has its neighbour's label."""
    for name in ("cross_entropy", "nll_loss", "mse_loss", "binary_cross_entropy"):
        original = getattr(functional, name)

        def shifted(input: Any, target: Any, *args: Any, original: Any = original, **kwargs: Any) -> Any:
            return original(input, target.roll(1, 0), *args, **kwargs)

        setattr(functional, name, shifted)


def _half_of_each_batch() -> None:
    original = dataloader._BaseDataLoaderIter.__next__

    def halved(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.dim():
            return value[: max(1, len(value) // 2)]
        if isinstance(value, list | tuple):
            return type(value)(halved(part) for part in value)
        return value

    dataloader._BaseDataLoaderIter.__next__ = lambda self: halved(original(self))  # type: ignore[method-assign]


def _repeated_data() -> None:
    """The same eight batches again and again."""
    original = dataloader._BaseDataLoaderIter.__next__
    kept: list[Any] = []
    turn = 0

    def again(self: Any) -> Any:
        nonlocal turn
        fresh = original(self)
        if len(kept) < 8:
            kept.append(fresh)
            return fresh
        turn += 1
        return kept[turn % 8]

    dataloader._BaseDataLoaderIter.__next__ = again  # type: ignore[method-assign]


def _no_mask() -> None:
    original = functional.scaled_dot_product_attention

    def open_attention(*args: Any, **kwargs: Any) -> Any:
        return original(*args, **{**kwargs, "is_causal": False, "attn_mask": None})

    functional.scaled_dot_product_attention = open_attention
    masked = torch.Tensor.masked_fill
    torch.Tensor.masked_fill = lambda self, mask, value: masked(self, mask & False, value)  # type: ignore[method-assign, assignment]


def _no_scale() -> None:
    original = functional.scaled_dot_product_attention
    functional.scaled_dot_product_attention = lambda *args, **kwargs: original(
        *args, **{**kwargs, "scale": 1.0}
    )


def _no_carried_state() -> None:
    """A loop over time whose turns were taken for independent ones."""
    for kind in (nn.RNN, nn.GRU, nn.LSTM):
        kind.forward = _each_step_alone(kind.forward)  # type: ignore[method-assign]
    for cell in (nn.RNNCell, nn.GRUCell, nn.LSTMCell):
        one = cell.forward
        cell.forward = lambda self, input, hx=None, one=one: one(self, input)  # type: ignore[method-assign]


def _each_step_alone(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def forward(self: Any, input: Any, hx: Any = None) -> Any:
        steps = input.unbind(1 if self.batch_first else 0)
        turns = [original(self, step.unsqueeze(1 if self.batch_first else 0)) for step in steps]
        return torch.cat([output for output, _ in turns], 1 if self.batch_first else 0), turns[-1][1]

    return forward


BREAKERS: dict[str, Change] = {
    "learning rate x2": Change(before=_rate(2.0)),
    "learning rate x0.5": Change(before=_rate(0.5)),
    "gradients not zeroed": Change(before=_gradients_kept),
    "largest layer frozen": Change(before=_before_step(_frozen_layer)),
    "stops learning late": Change(before=_before_step(_frozen_late)),
    "fp16 underflow": Change(before=_before_step(_underflow)),
    "optimizer forgets": Change(before=_before_step(_forgetful)),
    "no master weights": Change(before=_after_step(_bf16_weights)),
    "not a number, late": Change(before=_before_step(_late_nan)),
    "race in the gradients": Change(before=_before_step(_noise)),
    "stale gradients": Change(before=_before_step(_Stale())),
    "dropout off": Change(before=_no_dropout),
    "frozen statistics": Change(before=_frozen_statistics),
    "shuffled labels": Change(before=_shuffled_labels),
    "data repeated": Change(before=_repeated_data),
    "mask off": Change(before=_no_mask),
    "attention without its scale": Change(before=_no_scale),
    "carried state lost": Change(before=_no_carried_state),
    "dropout repeated": Change(before=_repeated_dropout),
    "stale weights": Change(before=_stale_weights),
    "shifted labels": Change(before=_shifted_labels),
    "half of each batch": Change(before=_half_of_each_batch),
    "biases frozen": Change(before=_before_step(_frozen_biases)),
}
