"""Hook point `forward`: finds the root modules, then hooks those instances alone (`root.py`).

A root is the outermost module that is called. Until the roots are known, every look-up of `torch.nn.Module.__call__` on
an instance is seen; the class itself shows torch's own. torch's global module hooks would do it too, but they switch
off its fast path, make `torch.compile` warn, and end up inside compiled code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dis import opname
from types import FrameType
from typing import Any

from hotloop.probe.frameless import Before
from hotloop.probe.hook_points.readers_aside import hide_from_torchscript, search_after_fx, watch_compile
from hotloop.probe.hook_points.requests import Requests
from hotloop.probe.hook_points.root import Root
from hotloop.probe.hook_points.root_hook import hook_of
from hotloop.probe.hook_points.wrappers import Wrappers
from hotloop.probe.probe import INFERRING, Probe
from hotloop.probe.record.facts import num_values
from hotloop.probe.tracers import reader

DISCOVERY_STEPS = 2
"""Steps after which the search ends; in the first step every root has been called once."""
DISCOVERY_CALLS = 64
"""Outermost calls after which it ends where no step does (inference)."""
MAX_SOLVER_CALLS = 256
"""With gradients, before any backward: a solver calls a model so often in the first step."""


TRACER = "torch.jit._trace"
"""Its modules stand around a model while that is traced (for ONNX); they begin before the tracer does."""
QUANTIZED = ("torch.ao.nn.", "torch.nn.quantized", "torchao.")
"""Modules with packed weights instead of parameters."""


def install(probe: Probe) -> Roots:
    """Start looking for root modules."""
    roots = Roots(probe)
    roots.search()
    _wake_at_evaluation(probe)
    hide_from_torchscript()
    with probe.survive("fx"):
        search_after_fx(probe, roots)
    return roots


def waiting(probe: Probe, roots: Roots) -> dict[str, Callable[[Any], None]]:
    """Return what is to be done when torch's compiler has been imported."""
    return {"torch._dynamo": lambda _: watch_compile(probe, roots), **roots.requests.waiting()}


class Roots:
    """The root modules of this process; none is kept alive by being known.

    Args:
        probe: the probe they belong to.
    """

    def __init__(self, probe: Probe) -> None:
        from torch import is_grad_enabled
        from torch.nn import Module

        anchor = probe.config.anchor
        self.infers = probe.config.infers or (anchor is not None and anchor[0] in INFERRING)
        """The program trains nothing: what is tried acts on forwards without gradients."""
        self._is_grad_enabled = is_grad_enabled
        self._probe = probe
        self._class: Any = Module
        self._known: list[Root] = []
        self._wrappers = Wrappers()
        self.searching = False
        """Calls of every module are looked at: nothing may be compiled yet."""
        self._original = Module.__call__
        self._patched = Before(self._original, self._called)
        self._is_traced = reader()
        self._calls = self._calls_of_scripted = 0
        self._calls_at_step = 0
        self._idle_steps = 0
        self.inside = False
        """A root's forward is running: what it calls are its own parts."""
        self.requests = Requests(probe)
        probe.boundary.on_look.append(self._on_look)
        probe.boundary.pace.on_turn.append(self._turn)

    def search(self) -> None:
        """Look at every module's calls until the roots are known."""
        self.searching = True
        self._class.__call__ = self._patched

    def settle(self) -> None:
        """Give the class its own call back; from here on only the known roots are hooked."""
        self.searching = False
        self.step_aside()
        for root in self._alive():
            root.wrap_call()

    def step_aside(self) -> None:
        """Give the class its own call back for a while: a compiler reads it."""
        if vars(self._class)["__call__"] is self._patched:
            self._class.__call__ = self._original

    def step_back(self) -> None:
        """Go on with the search, if it was under way."""
        if self.searching and vars(self._class)["__call__"] is self._original:
            self._class.__call__ = self._patched

    def adopt(self, module: Any) -> None:
        """Make a module a root, if it is not one."""
        if hook_of(module) is None:
            root = Root(self._probe, self, module, self._slot_for(module))
            self._probe.sites.root(module, root.slot)
            self._known = [*(one for one in self._known if _may_tell(one)), root]
            root.hook()

    def forget(self, root: Root) -> None:
        """Take a module for unknown again: it was called to be built."""
        root.unhook()
        self._known = [one for one in self._known if one is not root]

    def _called(self, module: Any) -> None:
        if self.searching and self.inside:
            self._look_inside()
        elif self.searching:
            with self._probe.survive("root.discover"):
                if _is_call(sys._getframe(2)):
                    self._discover(module)

    def _look_inside(self) -> None:
        """Look for autocast that is switched on within a root: accelerate and Fabric put it around its forward."""
        probe, facts = self._probe, self._probe.facts
        if facts.autocast_dtype is None and not probe.activations and not probe.asleep:
            with probe.survive("root.autocast"):
                facts.look_at_autocast()

    def own_call(self) -> bool:
        """Whether a call belongs to the thread that is recorded, in a process that is not asleep."""
        try:
            return not self._probe.asleep and self._probe.recorder.own_thread()
        except Exception:  # the probe fails open
            self._probe.note("record:forward")
            return False

    def _discover(self, module: Any) -> None:
        if self._probe.in_backward or self._is_traced() or not self.own_call():
            return
        if type(module).__module__ == TRACER:
            return
        if next(module.parameters(), None) is None and not self._is_frozen(module):
            return  # a loss, a transform of each sample
        self.adopt(self._wrappers.lasting(module, self._known))
        self._calls += 1
        if self._calls > DISCOVERY_CALLS and self._probe.boundary.steps == 0 and not self._may_be_solving():
            self.settle()

    def _is_frozen(self, module: Any) -> bool:
        """Whether a module without parameters is a model: quantized, or frozen by TorchScript.

        A scripted transform of samples has none either: only where nothing else is called for long it is the model.
        """
        if any(type(part).__module__.startswith(QUANTIZED) for part in module.modules()):
            return True
        if not hasattr(module, "_c") or not self._probe.boundary.never_trained:
            return False
        self._calls_of_scripted += 1
        return self._calls_of_scripted > DISCOVERY_CALLS + self._num_calls()

    def _slot_for(self, module: Any) -> int:
        """A model made anew (a fold, an episode), the old one gone, has the old one's slot; so has what it wrapped."""
        kind = (type(module).__name__, num_values(module.parameters()))
        gone = [
            root.slot
            for root in self._known
            if root.module is None and (root.kind == kind or root.outlived_by() is module)
        ]
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
        elif not (self.searching or self._probe.activations or self._probe.compiles()):
            for root in self._alive():
                root.unhook()

    def _on_look(self, steps: int) -> None:
        if self._probe.recorder.lean:  # calls are not counted
            return
        called = self._calls_at_step != self._num_calls()
        if self.searching and steps >= DISCOVERY_STEPS and called and not self._may_be_solving():
            self.settle()
        for root in self._known:
            root.keep_hooked()
        self._look_again()
        if self.searching:
            self.step_back()  # a tracer puts back what the class shows
            self._probe.boundary.look_again()

    def _may_be_solving(self) -> bool:
        """Whether these may all be calls of the first training step."""
        if self.infers or not (self._probe.boundary.never_trained and self._is_grad_enabled()):
            return False
        return self._calls <= MAX_SOLVER_CALLS

    def _num_calls(self) -> int:
        return sum(root.calls for root in self._known)

    def _look_again(self) -> None:
        """Search anew when steps go by in which no known root trains (a new model, a later stage); not for ever."""
        calls = self._num_calls()
        self._idle_steps = 0 if calls != self._calls_at_step else self._idle_steps + 1
        self._calls_at_step = calls
        if self._idle_steps == DISCOVERY_STEPS and not self.searching:
            self.search()
        elif self._idle_steps > 2 * DISCOVERY_STEPS and self.searching:
            self.settle()


def _may_tell(root: Root) -> bool:
    """Whether a root is there, or gone and the model within it is not known yet."""
    part = root.outlived_by()
    return root.module is not None or (part is not None and hook_of(part) is None)


def _is_call(frame: FrameType) -> bool:
    """Whether a module is called here, not its `__call__` taken for later; `super().__call__(...)` is a call."""
    code = frame.f_code
    return code.co_name == "__call__" or not opname[code.co_code[frame.f_lasti]].startswith("LOAD")


def _wake_at_evaluation(probe: Probe) -> None:
    """While the recorder is lean, let `eval()` of a module that trains wake it: an evaluation begins."""
    from torch.nn import Module

    original, pace = Module.eval, probe.boundary.pace

    def evaluates(module: Any) -> None:
        with probe.survive("eval"):
            if module.training:
                pace.wake()

    pace.swap_while_lean(Module, "eval", original, Before(original, evaluates))
