"""Hook point `optimizer`: torch's own global step hooks, which survive schedulers, scalers and wrappers."""

from __future__ import annotations

import inspect
import sys
import weakref
from typing import Any

from hotloop.probe.frameless import Around, Before
from hotloop.probe.hook_points import grad_scaler
from hotloop.probe.hook_points.step_hooks import Pair, Passing, passing_hook, step_hooks, unread
from hotloop.probe.probe import Probe
from hotloop.probe.record.call_site import user_line
from hotloop.probe.record.events import MAX_SLOT, Kind, end
from hotloop.probe.record.facts import num_values
from hotloop.probe.record.invariants import Invariants
from hotloop.probe.record.sites import walk


def install(probe: Probe) -> None:
    """Register the step hooks; note where optimizers are made; change their keywords where asked to."""
    from torch.optim.optimizer import (
        Optimizer,
        register_optimizer_step_post_hook,
        register_optimizer_step_pre_hook,
    )

    slots = _Slots(probe)
    hooks = step_hooks(probe, slots)
    first = register_optimizer_step_pre_hook(hooks.before)
    last = register_optimizer_step_post_hook(hooks.after)
    _pass_while_lean(probe, hooks, passing_hook(probe, slots), first.id, last.id)
    _note_when_made(probe, Optimizer, slots)
    if probe.acting("on_optimizer"):
        _patch_constructors(probe)
    if probe.invariants is not None:
        _look_at_gradients(probe, probe.invariants)
    with probe.survive("scaler"):
        grad_scaler.install(probe, slots)


def _pass_while_lean(probe: Probe, hooks: Pair, passing: Passing, first: int, last: int) -> None:
    """Keep one short hook while the recorder is lean, unless compiled code may have read what is there."""
    from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks

    def turn(lean: bool) -> None:
        if lean and not probe.compiles() and _global_optimizer_pre_hooks.get(first) is hooks.before:
            del _global_optimizer_pre_hooks[first]
            _global_optimizer_post_hooks[last] = passing.after
            probe.recorder.catch_up = passing.catch_up
        elif not lean and _global_optimizer_post_hooks.get(last) is passing.after:
            passing.catch_up()
            probe.recorder.catch_up = None
            _global_optimizer_pre_hooks[first] = hooks.before
            _global_optimizer_post_hooks[last] = hooks.after

    probe.boundary.pace.on_turn.append(turn)


def _look_at_gradients(probe: Probe, invariants: Invariants) -> None:
    """Look at what the first steps are about to use; taken out at a boundary, where torch goes through other hooks."""
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    def look(optimizer: Any, args: Any, kwargs: Any) -> None:  # noqa: ARG001 - the hook's signature
        if not invariants.enough_steps and not probe.asleep and not probe.capturing():
            with probe.survive("invariants"), probe.boundary.clock.still():
                invariants.step(optimizer)

    handle = register_optimizer_step_pre_hook(unread(look))

    def leave(_: int) -> None:
        if invariants.enough_steps and handle.id in (handle.hooks_dict_ref() or ()):
            handle.remove()

    probe.boundary.on_look.append(leave)


class _Slots:
    """Numbers optimizers in the order of their first step; keeps none of them alive."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._made_at: weakref.WeakKeyDictionary[Any, tuple[str | None, int | None]] = (
            weakref.WeakKeyDictionary()
        )
        self._walks: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self.last: Any = _nobody
        self.last_number = 0

    def made(self, optimizer: Any) -> None:
        if optimizer not in self._made_at:  # a load comes here too
            self._made_at[optimizer] = user_line(3)
            if self._probe.sites.open("optimizer"):
                self._walks[optimizer] = walk(sys._getframe(3), optimizer)
            self._probe.recorder.raw(end(Kind.MADE))

    def of(self, optimizer: Any) -> int:
        number = self._numbers.get(optimizer)
        if number is None:
            number = self._numbers[optimizer] = min(self._new(optimizer), MAX_SLOT)
            self._note_sites(optimizer, number)
        self.last, self.last_number = weakref.ref(optimizer), number
        return number

    def _note_sites(self, optimizer: Any, slot: int) -> None:
        sites, name = self._probe.sites, f"{type(optimizer).__module__}.{type(optimizer).__qualname__}"
        if optimizer in self._walks:
            sites.keep("optimizer", name, self._walks.pop(optimizer), slot=slot)
        sites.note("step", f"{name}.step", slot=slot)

    def _new(self, optimizer: Any) -> int:
        path, line = self._made_at.get(optimizer, (None, None))
        facts = _describe(optimizer, path, line)
        known = self._probe.facts.optimizers
        taken = set(self._numbers.values())
        for slot, other in enumerate(known):
            # One made anew at the same line (a fold, an episode), the old one gone, is the same optimizer.
            same = (other["path"], other["line"], other["cls"]) == (path, line, facts["cls"])
            if same and path is not None and slot not in taken:
                return slot
        if len(known) <= MAX_SLOT:
            known.append(facts)
        return len(known) - 1


def _nobody() -> None:
    """Stands for a weak reference to nothing."""


def _describe(optimizer: Any, path: str | None, line: int | None) -> dict[str, Any]:
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    return {
        "cls": type(optimizer).__name__,
        "num_parameters": num_values(parameters),
        "fused": optimizer.defaults.get("fused"),
        "foreach": optimizer.defaults.get("foreach"),
        "supports_fused": "fused" in inspect.signature(type(optimizer)).parameters,
        "path": path,
        "line": line,
    }


def _note_when_made(probe: Probe, cls: Any, slots: _Slots) -> None:
    """Look at an optimizer in one of the first things that the base class's `__init__` calls."""

    def made(optimizer: Any) -> None:
        with probe.survive("optimizer.facts"):
            slots.made(optimizer)

    cls._patch_step_function = Before(cls._patch_step_function, made)


def _patch_constructors(probe: Probe) -> None:
    import torch

    for cls in vars(torch.optim).values():
        if (
            inspect.isclass(cls)
            and issubclass(cls, torch.optim.Optimizer)
            and cls is not torch.optim.Optimizer
        ):
            _patch_constructor(probe, cls)


def _patch_constructor(probe: Probe, cls: Any) -> None:
    original = cls.__init__
    signature = inspect.signature(original)

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        wanted = None
        with probe.survive("optimizer.keywords"):
            wanted = _keywords(probe, signature, self, args, kwargs)
        if wanted is not None:
            _construct(probe, original, self, *wanted)
        else:
            original(self, *args, **kwargs)

    # Programs ask inspect.signature(torch.optim.AdamW) for 'fused': the class shows its own.
    cls.__init__ = Around(original, init, only=cls)


def _keywords(
    probe: Probe, signature: inspect.Signature, optimizer: Any, args: Any, kwargs: Any
) -> tuple[list[Any], dict[str, Any], dict[str, Any]] | None:
    """Return the parameters as a list (an iterator would be used up by a first try), and both sets of keywords."""
    given = dict(signature.bind(optimizer, *args, **kwargs).arguments)
    given.pop("self")
    params = list(given.pop("params"))
    wanted = dict(given)
    for activation in probe.acting("on_optimizer"):
        try:
            wanted = activation.on_optimizer(type(optimizer), dict(wanted))
        except Exception:  # an optimization that fails is dropped, the program goes on
            probe.drop(activation, "on_optimizer")
    return params, wanted, given


def _construct(
    probe: Probe,
    original: Any,
    optimizer: Any,
    params: list[Any],
    wanted: dict[str, Any],
    given: dict[str, Any],
) -> None:
    """Construct with our keywords, or, where the class refuses them, with the program's own."""
    before = dict(optimizer.__dict__)
    try:
        original(optimizer, params, **wanted)
    except Exception:  # keywords of ours that it refuses
        for activation in probe.acting("on_optimizer"):
            probe.drop(activation, "on_optimizer")
    else:
        return
    optimizer.__dict__.clear()
    optimizer.__dict__.update(before)
    original(optimizer, params, **given)
