"""Hook point `forward`: finds the root modules, then hooks those instances alone (`root.py`).

A root is the outermost module that is called. Until the roots are known, `torch.nn.Module.__call__` is ours and looks
at every call; then it is torch's again. torch's global module hooks would do it too, but they switch off its fast path,
make `torch.compile` warn, and end up inside compiled code.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from hotloop.probe.hook_points import step_hooks
from hotloop.probe.hook_points.root import Root, hook_of
from hotloop.probe.probe import Probe
from hotloop.probe.record.events import Kind
from hotloop.probe.record.facts import num_values
from hotloop.probe.sections import section

DISCOVERY_STEPS = 2
"""Steps after which the search ends; in the first step every root has been called once."""
DISCOVERY_CALLS = 64
"""Outermost calls after which it ends where no step does (inference)."""


def install(probe: Probe) -> Roots:
    """Start looking for root modules."""
    roots = Roots(probe)
    roots.search()
    _wake_at_evaluation(probe)
    _watch_compile(probe, roots)
    _watch_replicas(probe)
    _watch_scripting(probe)
    return roots


class Roots:
    """The root modules of this process; none is kept alive by being known.

    Args:
        probe: the probe they belong to.
    """

    def __init__(self, probe: Probe) -> None:
        from torch.nn import Module

        self._probe = probe
        self._class: Any = Module
        self._known: list[Root] = []
        self._searching = False
        self._original = Module.__call__
        self._patched = self._discoverer(self._original)
        self._calls = 0
        self._calls_at_step = 0
        self._idle_steps = 0
        self.inside = False
        """A root's forward is running: what it calls are its own parts."""
        probe.boundary.on_look.append(self._on_look)
        probe.boundary.pace.on_turn.append(self._turn)

    def search(self) -> None:
        """Look at every module's calls until the roots are known."""
        self._searching = True
        self._class.__call__ = self._patched

    def settle(self) -> None:
        """Give the class its own call back; from here on only the known roots are hooked."""
        self._searching = False
        self.step_aside()
        for root in self._alive():
            root.wrap_call()

    def step_aside(self) -> None:
        """Give the class its own call back for a while: a compiler reads it, and so does torch when it is imported."""
        if self._class.__call__ is self._patched:
            self._class.__call__ = self._original
        for name, attribute in _KEPT_BY_TORCH:
            module = sys.modules.get(name)
            if module is not None and getattr(module, attribute, None) is self._patched:
                setattr(module, attribute, self._original)

    def step_back(self) -> None:
        """Go on with the search, if it was under way."""
        if self._searching:
            self._class.__call__ = self._patched

    def adopt(self, module: Any) -> None:
        """Make a module a root, if it is not one; one without parameters (a loss, an augmentation) is none."""
        if hook_of(module) is None and next(module.parameters(), None) is not None:
            root = Root(self._probe, self, module, self._slot_for(module))
            self._probe.sites.root(module, root.slot)
            self._known = [*self._alive(), root]
            root.hook()

    def _discoverer(self, original: Any) -> Any:
        @functools.wraps(original)
        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            if self._searching and not self.inside:
                with self._probe.survive("root.discover"):
                    self._discover(module)
            return original(module, *args, **kwargs)

        return call

    def own_call(self) -> bool:
        """Whether a call belongs to the thread that is recorded, in a process that is not asleep."""
        try:
            return not self._probe.asleep and self._probe.recorder.own_thread()
        except Exception:  # the probe fails open
            self._probe.note("record:forward")
            return False

    def _discover(self, module: Any) -> None:
        if self._probe.in_backward or not self.own_call():
            return
        self.adopt(module)
        self._calls += 1
        if self._calls > DISCOVERY_CALLS and self._probe.boundary.steps == 0:
            self.settle()

    def _slot_for(self, module: Any) -> int:
        """A model made anew (a fold, an episode), the old one gone, has the old one's slot."""
        kind = (type(module).__name__, num_values(module.parameters()))
        gone = [root.slot for root in self._known if root.module is None and root.kind == kind]
        alive = {root.slot for root in self._alive()}
        free = [slot for slot in gone if slot not in alive]
        return free[0] if free else len(self._probe.facts.roots)

    def _alive(self) -> list[Root]:
        return [root for root in self._known if root.module is not None]

    def _turn(self, lean: bool) -> None:
        """Leave the modules while the recorder is lean, unless something is to be changed in them or was compiled."""
        if not lean:
            for root in self._known:
                root.keep_hooked()
        elif not (self._searching or self._probe.activations or self._probe.compiles()):
            for root in self._alive():
                root.unhook()

    def _on_look(self, steps: int) -> None:
        if self._probe.recorder.lean:  # calls are not counted
            return
        if self._searching and steps >= DISCOVERY_STEPS and self._calls_at_step != self._num_calls():
            self.settle()
        for root in self._known:
            root.keep_hooked()
        self._look_again()
        if self._searching:
            self._probe.boundary.look_again()

    def _num_calls(self) -> int:
        return sum(root.calls for root in self._known)

    def _look_again(self) -> None:
        """Search anew when steps go by in which no known root is called (a model made anew); not for ever."""
        calls = self._num_calls()
        self._idle_steps = 0 if calls != self._calls_at_step else self._idle_steps + 1
        self._calls_at_step = calls
        if self._idle_steps == DISCOVERY_STEPS and not self._searching:
            self.search()
        elif self._idle_steps > 2 * DISCOVERY_STEPS and self._searching:
            self.settle()


_KEPT_BY_TORCH = (
    ("torch._dynamo.utils", "unpatched_nn_module_call"),
    ("torch._dynamo.variables.nn_module", "unpatched_nn_module_call"),
    ("torch.fx._symbolic_trace", "_orig_module_call"),
)
"""Where torch keeps `Module.__call__` when it is imported, to know later whether somebody has changed it."""


def _wake_at_evaluation(probe: Probe) -> None:
    """While the recorder is lean, let `eval()` of a module that trains wake it: an evaluation begins."""
    from torch.nn import Module

    original, pace = Module.eval, probe.boundary.pace

    @functools.wraps(original)
    def evaluate(self: Any) -> Any:
        if self.training:
            with probe.survive("eval"):
                pace.wake()
        return original(self)

    pace.swap_while_lean(Module, "eval", original, evaluate)


def _watch_compile(probe: Probe, roots: Roots) -> None:
    """Be out of the way whenever torch.compile reads code."""
    import torch

    original = torch.compile
    watched = False

    @functools.wraps(original)
    def compile_(*args: Any, **kwargs: Any) -> Any:
        nonlocal watched
        if not watched:
            watched = probe.uses_compile = True
            with probe.survive("compile"):
                probe.boundary.pace.wake()
                probe.sites.close()
                roots.step_aside()
                _hide_from_dynamo(roots)
                _time_compilation(probe)
                roots.step_back()
        return original(*args, **kwargs)

    torch.compile = compile_


def _time_compilation(probe: Probe) -> None:
    """Mark the beginning and end of what torch.compile works on."""
    from torch._dynamo import callback

    enter, leave = section(probe, Kind.COMPILE, aside=True)
    under_way: list[bool] = []
    callback.on_compile_start(lambda *_: under_way.append(enter()))
    callback.on_compile_end(lambda *_: leave() if under_way and under_way.pop() else None)


def _hide_from_dynamo(roots: Roots) -> None:
    """Let torch.compile pass over the probe's code: what it finds running it runs as it is, and never reads."""
    from torch._dynamo import callback, trace_rules
    from torch._dynamo.eval_frame import skip_code
    from torch.optim import optimizer

    callback.on_compile_start(lambda *_: roots.step_aside())
    callback.on_compile_end(lambda *_: roots.step_back())
    for name, module in list(sys.modules.items()):
        if (
            name.startswith("hotloop.probe.")
            and name != step_hooks.__name__
            and not hasattr(module, "__path__")
        ):
            trace_rules.add(name)
    for hooks in (optimizer._global_optimizer_pre_hooks, optimizer._global_optimizer_post_hooks):
        for number, hook in list(hooks.items()):
            if getattr(hook, "__module__", None) == step_hooks.__name__:
                hooks[number] = guarded = step_hooks.unread(hook)
                skip_code(hook.__code__)
                skip_code(guarded.__code__)


def _watch_replicas(probe: Probe) -> None:
    """DataParallel copies a module's attributes, the hook among them, which belongs to the original alone."""
    from torch.nn import Module

    original = Module._replicate_for_data_parallel

    @functools.wraps(original)
    def replicate(self: Any) -> Any:
        replica = original(self)
        with probe.survive("replica"):
            hook = hook_of(replica)
            if hook is not None:
                hook.leave(replica)
        return replica

    Module._replicate_for_data_parallel = replicate


def _watch_scripting(probe: Probe) -> None:
    """`torch.jit.script` gives every attribute of a module a type; the hook has none."""
    import torch

    original = torch.jit.script

    @functools.wraps(original)
    def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
        hooks: list[tuple[Any, Any]] = []
        with probe.survive("script"):
            modules = obj.modules() if isinstance(obj, torch.nn.Module) else ()
            hooks = [(module, hook) for module in modules if (hook := hook_of(module)) is not None]
            for module, hook in hooks:
                hook.leave(module)
        try:
            return original(obj, *args, **kwargs)
        finally:
            for module, hook in hooks:
                hook.come_back(module)

    torch.jit.script = script
