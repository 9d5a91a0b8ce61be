"""Be out of the way of what reads modules: torch.compile, FX and TorchScript."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol

from hotloop.probe.frameless import Before, Timed
from hotloop.probe.hook_points import step_hooks
from hotloop.probe.hook_points.root_hook import PLACE
from hotloop.probe.probe import Probe
from hotloop.probe.record.events import Kind
from hotloop.probe.sections import Section, section


class Search(Protocol):
    """The search for root modules, which changes a class of torch's."""

    def step_aside(self) -> None:
        """Give the class its own call back for a while."""

    def step_back(self) -> None:
        """Go on, if it was under way."""


def watch_compile(probe: Probe, roots: Search) -> None:
    """Be out of the way whenever torch.compile reads code; called when its compiler has been imported."""
    from torch._dynamo import trace_rules
    from torch._dynamo.callback import CompilationCallbackHandler as Handler

    for name, module in list(sys.modules.items()):
        if (
            name.startswith("hotloop.probe.")
            and name != step_hooks.__name__
            and not hasattr(module, "__path__")
        ):
            trace_rules.add(name)
    probe.on_compile.append(_asides(probe, roots))

    def tell(which: int) -> Callable[[Any], None]:
        def told(_: Any) -> None:
            with probe.survive("compile"):
                for calls in probe.on_compile:
                    calls[which]()

        return told

    # `torch._dynamo.reset()` forgets callbacks that were registered.
    Handler.run_start_callbacks = Before(Handler.run_start_callbacks, tell(0))
    Handler.run_end_callbacks = Before(Handler.run_end_callbacks, tell(1))


def _asides(probe: Probe, roots: Search) -> tuple[Callable[[], None], Callable[[], None]]:
    enter, leave = section(probe, Kind.COMPILE, aside=True)
    under_way: list[bool] = []

    def begins() -> None:
        if not probe.uses_compile:
            probe.uses_compile = True
            probe.boundary.pace.wake()
            probe.sites.close()
            _guard_step_hooks()
        roots.step_aside()
        under_way.append(enter())

    def ends() -> None:
        if under_way and under_way.pop():
            leave()
        roots.step_back()

    return begins, ends


def _guard_step_hooks() -> None:
    """Let torch.compile come to nothing in the hooks around the optimizer's step."""
    from torch._dynamo.eval_frame import skip_code
    from torch.optim import optimizer

    for hooks in (optimizer._global_optimizer_pre_hooks, optimizer._global_optimizer_post_hooks):
        for number, hook in list(hooks.items()):
            if getattr(hook, "__module__", None) == step_hooks.__name__:
                hooks[number] = guarded = step_hooks.unread(hook)
                skip_code(hook.__code__)
                skip_code(guarded.__code__)


def search_after_fx(probe: Probe, roots: Search) -> None:
    """Go on with the search behind a symbolic trace, which puts back what the class shows.

    A program that folds or quantizes its model before it calls it takes no step at which that would be noticed.
    """
    from torch.fx import Tracer

    def ends() -> None:
        with probe.survive("fx"):
            roots.step_back()

    Tracer.trace = Timed(Tracer.trace, Section(lambda: True, ends))


def hide_from_torchscript() -> None:
    """`torch.jit.script` and `torch.jit.trace` give every attribute of a module a type; the hook has none."""
    from torch.jit import _recursive

    if PLACE not in _recursive.ignored_attributes:
        _recursive.ignored_attributes.append(PLACE)
