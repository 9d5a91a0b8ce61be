"""Hook point `optimizer`: torch's own global step hooks, which survive schedulers, scalers and wrappers."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from hotloop.probe.callsite import user_line
from hotloop.probe.events import Kind, begin, end
from hotloop.probe.probe import Probe


def install(probe: Probe) -> None:
    """Register the step hooks; note where optimizers are made; change their keywords where asked to."""
    from torch.optim.optimizer import (
        Optimizer,
        register_optimizer_step_post_hook,
        register_optimizer_step_pre_hook,
    )

    slots = _Slots(probe)
    recorder, boundary = probe.recorder, probe.boundary

    def before(optimizer: Any, args: Any, kwargs: Any) -> None:
        if recorder.own_thread():
            probe.asleep = False
            recorder.mark(begin(Kind.OPTIMIZER, slots.of(optimizer)))

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:
        if recorder.own_thread():
            slot = slots.of(optimizer)
            recorder.mark(end(Kind.OPTIMIZER, slot))
            with probe.survive("boundary"):
                boundary.ended(Kind.OPTIMIZER, slot)

    register_optimizer_step_pre_hook(before)
    register_optimizer_step_post_hook(after)
    _patch_base_init(Optimizer, slots)
    if probe.acting("on_optimizer"):
        _patch_constructors(probe)


class _Slots:
    """Numbers optimizers in the order of their first step."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._numbers: dict[int, int] = {}
        self._made_at: dict[int, tuple[str | None, int | None]] = {}

    def made(self, optimizer: Any) -> None:
        self._made_at[id(optimizer)] = user_line(3)
        self._numbers.pop(id(optimizer), None)  # the address of one that is gone

    def of(self, optimizer: Any) -> int:
        number = self._numbers.get(id(optimizer))
        if number is None:
            number = self._numbers[id(optimizer)] = self._new(optimizer)
        return number

    def _new(self, optimizer: Any) -> int:
        path, line = self._made_at.get(id(optimizer), (None, None))
        facts = _describe(optimizer, path, line)
        known = self._probe.facts.optimizers
        for slot, other in enumerate(known):
            # One made anew at the same line (a fold, an episode) is the same optimizer.
            if path is not None and (other["path"], other["line"], other["cls"]) == (path, line, facts["cls"]):
                taken = {value for key, value in self._numbers.items() if key != id(optimizer)}
                if slot not in taken:
                    return slot
        known.append(facts)
        return len(known) - 1


def _describe(optimizer: Any, path: str | None, line: int | None) -> dict[str, Any]:
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    return {
        "cls": type(optimizer).__name__,
        "num_parameters": sum(parameter.numel() for parameter in parameters),
        "fused": optimizer.defaults.get("fused"),
        "foreach": optimizer.defaults.get("foreach"),
        "supports_fused": "fused" in inspect.signature(type(optimizer)).parameters,
        "path": path,
        "line": line,
    }


def _patch_base_init(cls: Any, slots: _Slots) -> None:
    original = cls.__init__

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        slots.made(self)

    cls.__init__ = __init__


def _patch_constructors(probe: Probe) -> None:
    import torch

    for cls in vars(torch.optim).values():
        if inspect.isclass(cls) and issubclass(cls, torch.optim.Optimizer) and cls is not torch.optim.Optimizer:
            _patch_constructor(probe, cls)


def _patch_constructor(probe: Probe, cls: Any) -> None:
    original = cls.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if type(self) is cls:
            with probe.survive("optimizer.keywords"):
                if _construct(probe, original, signature, self, args, kwargs):
                    return
        original(self, *args, **kwargs)

    # Programs ask inspect.signature(torch.optim.AdamW) for 'fused'.
    __init__.__signature__ = signature  # type: ignore[attr-defined]
    cls.__init__ = __init__


def _construct(
    probe: Probe, original: Any, signature: inspect.Signature, optimizer: Any, args: Any, kwargs: Any
) -> bool:
    given = dict(signature.bind(optimizer, *args, **kwargs).arguments)
    given.pop("self")
    params = list(given.pop("params"))  # an iterator would be used up by a first try
    wanted = dict(given)
    acting = probe.acting("on_optimizer")
    for activation in acting:
        try:
            wanted = activation.on_optimizer(type(optimizer), dict(wanted))
        except Exception:  # an optimization that fails is dropped, the program goes on
            probe.drop(activation, "on_optimizer")
    try:
        original(optimizer, params, **wanted)
    except Exception:  # keywords of ours that it refuses: the program's own are used
        for activation in acting:
            probe.drop(activation, "on_optimizer")
        optimizer.__dict__.clear()
        original(optimizer, params, **given)
    return True
