"""Hook point `forward`: finds the root modules, then hooks those instances alone.

A root is the outermost module that is called. torch's global module hooks find it; they fire for every submodule and
switch off torch's fast path, so they are taken out again after the first steps. The instance is hooked in the place that
`Module.compile()` uses: torch drops it when a module is pickled or copied, and `state_dict`, `children()` and the
signature of `forward` stay as they are.
"""

from __future__ import annotations

import functools
import weakref
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from hotloop.probe.activation import Activation
from hotloop.probe.events import MAX_SLOT, Kind, begin, end, size_event
from hotloop.probe.facts import describe_root, distributed_kind
from hotloop.probe.probe import Probe

_HOOK = "_compiled_call_impl"
DISCOVERY_STEPS = 2
"""Steps after which the global hooks are taken out; in the first step every root has been called once."""
DISCOVERY_CALLS = 64
"""Outermost calls after which they are taken out where no step ends (inference)."""


def install(probe: Probe) -> Roots:
    """Start looking for root modules."""
    roots = Roots(probe)
    roots.search()
    _watch_compile(roots)
    return roots


class Roots:
    """The root modules of this process.

    Args:
        probe: the probe they belong to.
    """

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._known: dict[int, _Root] = {}
        self._handles: list[Any] = []
        self._under_way: Any = None
        self._exit: ExitStack | None = None
        self._calls = 0
        self._calls_at_step = 0
        self._idle_steps = 0
        self.inside = False
        """A root's forward is running: what it calls are its own parts."""
        probe.boundary.on_step.append(self._on_step)

    def search(self) -> None:
        """Hook every module until the roots are known."""
        from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

        if not self._handles:
            self._handles = [
                register_module_forward_pre_hook(self._before),
                register_module_forward_hook(self._after, always_call=True),
            ]

    def settle(self) -> None:
        """Take the global hooks out; from here on only the known roots are hooked."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._under_way = None
        for root in self._known.values():
            root.wrap_call()

    def adopt(self, module: Any) -> None:
        """Hook a module that the program compiles; hooks on all modules would end up in the compiled code."""
        with self._probe.survive("root.adopt"):
            root = self._root(module)
            root.hook()
            self.settle()

    def _before(self, module: Any, args: Any) -> Any:
        if self.inside or self._under_way is not None or self._probe.asleep:
            return None
        if not self._probe.recorder.own_thread() or not _has_parameters(module):
            return None
        self._under_way = module
        self._calls += 1
        with self._probe.survive("root.first"):
            root = self._root(module)
            self._exit, args = root.first_call(args)
            return args
        return None

    def _after(self, module: Any, args: Any, output: Any) -> Any:
        if module is not self._under_way:
            return None
        self._under_way = None
        with self._probe.survive("root.first"):
            root = self._root(module)
            output = root.first_return(self._exit, output)
            root.hook()
            if self._calls > DISCOVERY_CALLS and self._probe.boundary.steps == 0:
                self.settle()
            return output
        return None

    def _on_step(self, steps: int) -> None:
        if self._handles and steps >= DISCOVERY_STEPS:
            self.settle()
        for root in self._known.values():
            root.keep_hooked()
        self._look_again(steps)

    def _look_again(self, steps: int) -> None:
        """Search anew when steps go by in which no known root is called (a model made anew)."""
        calls = sum(root.calls for root in self._known.values())
        self._idle_steps = 0 if calls != self._calls_at_step else self._idle_steps + 1
        self._calls_at_step = calls
        if not self._handles and 2 <= self._idle_steps <= 3:
            self.search()

    def _root(self, module: Any) -> _Root:
        root = self._known.get(id(module))
        if root is None or root.module is not module:
            root = _Root(self._probe, self, module, len(self._known))
            self._known[id(module)] = root
        return root


class _Root:
    """One root module: its recording wrapper and what the activations do to its forward."""

    def __init__(self, probe: Probe, roots: Roots, module: Any, slot: int) -> None:
        self._probe = probe
        self._roots = roots
        self.module = module
        self.calls = 0
        self._slot = min(slot, MAX_SLOT)
        self._described = False
        self._contexts: list[AbstractContextManager[Any]] = []
        self._inputs: list[Activation] = []
        self._outputs: list[Activation] = []
        self._activated = False
        self._wrapped_call: Any = None
        self._hooked: Any = None

    # The first call, seen by the global hooks ----------------------------------------------------------------------

    def first_call(self, args: Any) -> tuple[ExitStack, Any]:
        """Record the beginning of a forward that the global hooks saw; return what to close and the arguments."""
        stack = ExitStack()
        trains = self._trains()
        self._note(args, {})
        self._mark_size(args, {})
        kind = Kind.FORWARD if trains else Kind.EVALUATE
        if trains or self._inference():
            self._activate()
            args, _ = self._change_inputs(args, {})
            for context in self._contexts:
                stack.enter_context(context)
        self._first_kind = kind
        self._probe.recorder.mark(begin(kind, self._slot))
        return stack, args

    def first_return(self, stack: ExitStack | None, output: Any) -> Any:
        """Record the end of that forward; return its output."""
        self._probe.recorder.mark(end(self._first_kind, self._slot))
        if stack is not None:
            stack.close()
        if self._activated:
            output = self._change_output(output)
        if self._first_kind is Kind.EVALUATE or self._probe.boundary.never_trained:
            self._probe.boundary.ended(Kind.EVALUATE, self._slot)
        return output

    # Later calls, through the instance -----------------------------------------------------------------------------

    def hook(self) -> None:
        """Put the recording wrapper where `Module.compile()` puts the compiled call."""
        inner = self.module.__dict__.get(_HOOK) or self.module._call_impl
        if inner is not self._hooked:
            self._hooked = self._wrapper(inner)
            self.module.__dict__[_HOOK] = self._hooked

    def keep_hooked(self) -> None:
        """Hook again if the program compiled the module in place meanwhile."""
        if self._hooked is not None and self.module.__dict__.get(_HOOK) is not self._hooked:
            self.hook()

    def wrap_call(self) -> None:
        """Let the activations replace the call (compilation), once the global hooks are gone."""
        if not self._activated or self._wrapped_call is not None or self._hooked is None:
            return
        call = self._hooked.__wrapped__
        for activation in self._probe.acting("wrap_forward"):
            try:
                call = activation.wrap_forward(self.module, call)
            except Exception:  # an optimization that fails is dropped, the program goes on
                self._probe.drop(activation, "wrap_forward")
        self._wrapped_call = call

    def _wrapper(self, inner: Any) -> Any:
        recorder, roots, boundary, slot = self._probe.recorder, self._roots, self._probe.boundary, self._slot
        forward, evaluate = Kind.FORWARD, Kind.EVALUATE
        from torch import is_grad_enabled

        @functools.wraps(inner)
        def call(*args: Any, **kwargs: Any) -> Any:
            if roots.inside or self._probe.asleep or not recorder.own_thread():
                return inner(*args, **kwargs)
            trains = is_grad_enabled()
            kind = forward if trains else evaluate
            self.calls += 1
            self._mark_size(args, kwargs)
            roots.inside = True
            recorder.mark(begin(kind, slot))
            try:
                if self._activated and (trains or self._inference()):
                    return self._acted(inner, args, kwargs)
                return inner(*args, **kwargs)
            finally:
                recorder.mark(end(kind, slot))
                roots.inside = False
                if not trains or boundary.never_trained:
                    with self._probe.survive("boundary"):
                        boundary.ended(evaluate, slot)

        return call

    def _acted(self, inner: Any, args: Any, kwargs: Any) -> Any:
        args, kwargs = self._change_inputs(args, kwargs)
        call = self._wrapped_call or inner
        if not self._contexts:
            return self._change_output(call(*args, **kwargs))
        with ExitStack() as stack:
            for context in self._contexts:
                stack.enter_context(context)
            output = call(*args, **kwargs)
        return self._change_output(output)

    # Activations ---------------------------------------------------------------------------------------------------

    def _activate(self) -> None:
        if self._activated or not self._probe.activations:
            return
        self._activated = True
        for activation in list(self._probe.activations):
            try:
                activation.on_root(self.module)
                context = activation.forward_context(self.module)
            except Exception:  # an optimization that fails is dropped, the program goes on
                self._probe.drop(activation, "on_root")
                continue
            if context is not None:
                self._contexts.append(context)
        self._inputs = self._probe.acting("on_forward_inputs")
        self._outputs = self._probe.acting("on_forward_output")

    def _change_inputs(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        for activation in self._inputs:
            try:
                args, kwargs = activation.on_forward_inputs(self.module, args, kwargs)
            except Exception:  # an optimization that fails is dropped, the program goes on
                self._inputs = [other for other in self._inputs if other is not activation]
                self._probe.drop(activation, "on_forward_inputs")
        return args, kwargs

    def _change_output(self, output: Any) -> Any:
        for activation in self._outputs:
            try:
                output = activation.on_forward_output(self.module, output)
            except Exception:  # an optimization that fails is dropped, the program goes on
                self._outputs = [other for other in self._outputs if other is not activation]
                self._probe.drop(activation, "on_forward_output")
        return output

    # Facts ---------------------------------------------------------------------------------------------------------

    def _trains(self) -> bool:
        import torch

        return torch.is_grad_enabled() and any(p.requires_grad for p in self.module.parameters())

    def _inference(self) -> bool:
        anchor = self._probe.config.anchor
        return anchor is not None and anchor[0] == "forward"

    def _mark_size(self, args: Any, kwargs: Any) -> None:
        for value in (*args, *kwargs.values()):
            shape = getattr(value, "shape", None)
            if shape is not None and len(shape):
                tokens = value.numel() if len(shape) == 2 and not value.is_floating_point() else 0
                self._probe.recorder.raw(size_event(shape[0], tokens))
                return

    def _note(self, args: Any, kwargs: Any) -> None:
        if self._described or len(self._probe.facts.roots) > MAX_SLOT:
            return
        self._described = True
        import torch

        facts = self._probe.facts
        facts.roots.append(describe_root(self.module, args, kwargs))
        facts.distributed = facts.distributed or distributed_kind(self.module)
        if hasattr(self.module, "_get_ddp_logging_data"):
            facts.ddp_modules.append(weakref.ref(self.module))
        if torch.is_autocast_enabled("cpu"):
            facts.autocast_dtype = str(torch.get_autocast_dtype("cpu")).removeprefix("torch.")
        if torch.cuda.is_available() and torch.is_autocast_enabled("cuda"):
            facts.autocast_dtype = str(torch.get_autocast_dtype("cuda")).removeprefix("torch.")
        facts.shared_memory = facts.shared_memory or _shared(self.module)


def _has_parameters(module: Any) -> bool:
    return next(module.parameters(), None) is not None


def _shared(module: Any) -> bool:
    parameter = next(module.parameters(), None)
    return parameter is not None and parameter.device.type == "cpu" and parameter.is_shared()


def _watch_compile(roots: Roots) -> None:
    """Learn of modules that the program compiles before it does."""
    import torch

    original_compile, original_in_place = torch.compile, torch.nn.Module.compile

    @functools.wraps(original_compile)
    def compile_(*args: Any, **kwargs: Any) -> Any:
        compiled = original_compile(*args, **kwargs)
        roots.settle()
        if isinstance(compiled, torch.nn.Module):
            roots.adopt(compiled)
        return compiled

    @functools.wraps(original_in_place)
    def in_place(self: Any, *args: Any, **kwargs: Any) -> Any:
        original_in_place(self, *args, **kwargs)
        roots.adopt(self)

    torch.compile = compile_
    torch.nn.Module.compile = in_place  # type: ignore[method-assign]
