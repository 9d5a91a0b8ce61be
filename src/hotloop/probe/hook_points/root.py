"""One root module: its recording hook, and what the activations do to its forward.

The instance is hooked in the place that `Module.compile()` uses: torch drops it when a module is pickled or copied, and
`state_dict`, `children()` and the signature of `forward` stay as they are. Where a class pickles its attributes by
itself, the hook turns into None on the way.
"""

from __future__ import annotations

import weakref
from contextlib import AbstractContextManager, ExitStack
from threading import get_ident
from time import monotonic_ns
from typing import Any, Protocol

from hotloop.probe.activation.activation import Activation
from hotloop.probe.probe import Probe
from hotloop.probe.record.events import MAX_SLOT, TIME_SHIFT, Kind, begin, end, size_event
from hotloop.probe.record.facts import describe_argument, describe_root, distributed_kind, num_values

_PLACE = "_compiled_call_impl"
LOOKS = 8
"""Training calls of a root whose call sites are kept: a GAN calls its discriminator from three lines."""


class Surroundings(Protocol):
    """What a root asks of the roots that it belongs to."""

    inside: bool

    def own_call(self) -> bool:
        """Whether a call belongs to the thread that is recorded, in a process that is not asleep."""


def hook_of(module: Any) -> Hook | None:
    """Return the hook that a module carries."""
    hook = module.__dict__.get(_PLACE)
    return hook if isinstance(hook, Hook) else None


class Hook:
    """What is called instead of a root module's call.

    It holds its module weakly: a cycle would keep the module's memory until the garbage collector runs.

    Args:
        root: the root that it records.
        module: the module it sits in.
        compiled: the call that `Module.compile()` had put there; None: the module's plain call.
    """

    def __init__(self, root: Root, module: Any, compiled: Any) -> None:
        self.compiled = compiled
        self._root = root
        self._module = weakref.ref(module)
        self._recorder, self._activations = root.surroundings

    def plain(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module as if the hook was not there."""
        if self.compiled is not None:
            return self.compiled(*args, **kwargs)
        return self._module()._call_impl(*args, **kwargs)  # type: ignore[union-attr]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module, recorded and changed as the activations ask.

        A call that is only recorded, like the one before it, is marked here: the fewer frames the better.
        """
        root = self._root
        if self._recorder.lean and not self._activations and root.grad_enabled():
            root.calls += 1
            if self.compiled is not None:
                return self.compiled(*args, **kwargs)
            return self._module()._call_impl(*args, **kwargs)  # type: ignore[union-attr]
        if not root.begins_as_before(args):
            return root.call(self.plain, args, kwargs)
        try:
            if self.compiled is not None:
                return self.compiled(*args, **kwargs)
            return self._module()._call_impl(*args, **kwargs)  # type: ignore[union-attr]
        finally:
            root.ends_as_before()

    def leave(self, module: Any) -> None:
        """Leave a module as it was."""
        if self.compiled is None:
            del module.__dict__[_PLACE]
        else:
            module.__dict__[_PLACE] = self.compiled

    def come_back(self, module: Any) -> None:
        """Sit in the module again."""
        module.__dict__[_PLACE] = self

    def __reduce__(self) -> tuple[Any, ...]:
        """Become None in a pickle."""
        return (type(None), ())

    def __deepcopy__(self, memo: Any) -> None:
        """Become None in a copy."""


class Root:
    """A root module.

    Args:
        probe: the probe.
        roots: those it belongs to.
        module: the module; not kept alive.
        slot: its number.
    """

    def __init__(self, probe: Probe, roots: Surroundings, module: Any, slot: int) -> None:
        from torch import is_grad_enabled

        self._probe = probe
        self._roots = roots
        self._module = weakref.ref(module)
        self.grad_enabled = is_grad_enabled
        self.surroundings = (probe.recorder, probe.activations)
        self.calls = 0
        self.slot = min(slot, MAX_SLOT)
        self.kind = (type(module).__name__, num_values(module.parameters()))
        self._described = False
        self._site: dict[str, Any] | None = None
        """What is known of the call site of the call under way, if it is looked at."""
        self._looks_left = LOOKS if probe.sites.wanted else 0
        self._learns = True
        """Whether some parameter does; a frozen teacher in evaluation mode keeps no graph of its own."""
        self._shape: Any = ()
        self._size_event = size_event(0, 0)
        self._contexts: list[AbstractContextManager[Any]] = []
        self._inputs: list[Activation] = []
        self._outputs: list[Activation] = []
        self._activated = False
        self._wrapped_call: Any = None
        self._hooked: Hook | None = None
        # begin and end of a forward without and with gradients, and with them in evaluation mode
        self._codes = tuple(
            (begin(kind, self.slot), end(kind, self.slot))
            for kind in (Kind.EVALUATE, Kind.FORWARD, Kind.SCORE)
        )

    @property
    def module(self) -> Any:
        """The module; None when it is gone."""
        return self._module()

    def hook(self) -> None:
        """Put the recording hook into the module."""
        module = self.module
        self._hooked = Hook(self, module, module.__dict__.get(_PLACE))
        module.__dict__[_PLACE] = self._hooked

    def unhook(self) -> None:
        """Leave the module as it was, if the hook is still in its place."""
        module = self.module
        if module is not None and self._hooked is not None and module.__dict__.get(_PLACE) is self._hooked:
            self._hooked.leave(module)

    def keep_hooked(self) -> None:
        """Hook again if the program compiled the module in place meanwhile, or the hook had left it."""
        module = self.module
        if module is not None and module.__dict__.get(_PLACE) is not self._hooked:
            self.hook()

    def wrap_call(self) -> None:
        """Let the activations replace the call (compilation), once the search for roots is over."""
        if not self._activated or self._wrapped_call is not None or self._hooked is None:
            return
        call: Any = self._hooked.compiled or self.module._call_impl
        for activation in self._probe.acting("wrap_forward"):
            try:
                call = activation.wrap_forward(self.module, call)
            except Exception:  # an optimization that fails is dropped, the program goes on
                self._probe.drop(activation, "wrap_forward")
        self._wrapped_call = call

    def begins_as_before(self, args: Any) -> bool:
        """Mark the beginning of a training call that is only recorded; False: it is not one, nothing was marked."""
        probe, recorder = self._probe, self._probe.recorder
        try:
            if (
                not self._described
                or self._looks_left
                or get_ident() != recorder.thread
                or probe.asleep
                or probe.in_backward
                or probe.activations
                or self._roots.inside
                or not (args and self._shape)
                or args[0].shape != self._shape
                or not self.grad_enabled()
                or (self._learns and not self._module().training)  # type: ignore[union-attr]
            ):
                return False
            recorder.append(self._size_event)
            recorder.append((monotonic_ns() - recorder.base) << TIME_SHIFT | self._codes[1][0])
        except Exception:  # no shape; what else may fail, fails again in `call`, which says so
            return False
        self.calls += 1
        self._roots.inside = True
        return True

    def ends_as_before(self) -> None:
        """Mark the end of what `begins_as_before` began."""
        self._roots.inside = False
        recorder, boundary = self._probe.recorder, self._probe.boundary
        try:
            recorder.append((monotonic_ns() - recorder.base) << TIME_SHIFT | self._codes[1][1])
            if boundary.never_trained:
                boundary.ended(Kind.EVALUATE, self.slot)
        except Exception:  # the probe fails open
            self._probe.note("boundary")

    def call(self, plain: Any, args: Any, kwargs: Any) -> Any:
        """Call the module, recorded and changed."""
        roots = self._roots
        if roots.inside or not roots.own_call():
            return plain(*args, **kwargs)
        trains = self.grad_enabled()
        ends = self._enter(trains, args, kwargs)
        site, self._site = self._site, None
        roots.inside = True
        try:
            if self._probe.activations and (trains or self._inference()):
                return self._acted(plain, args, kwargs)
            output = plain(*args, **kwargs)
            if site is not None:
                site["returns"] = describe_argument(None, output)
            return output
        finally:
            roots.inside = False
            if ends:
                self._leave(ends, trains)

    def _enter(self, trains: bool, args: Any, kwargs: Any) -> int:
        """Mark the beginning; return the mark of the end, 0: not recorded (a recomputation, part of the backward)."""
        try:
            if self._probe.in_backward:
                return 0
            recorder = self._probe.recorder
            self.calls += 1
            if not trains:
                self._probe.boundary.pace.wake()
            elif recorder.lean:
                return 0
            if not self._described:
                self._note(args, kwargs)
            if self._looks_left or not trains:
                self._look(trains, args, kwargs)
            self._mark_size(args, kwargs)
            scores = trains and self._learns and not self.module.training
            begins, ends = self._codes[2 if scores else trains]
            recorder.mark(begins)
        except Exception:  # the probe fails open
            self._probe.note("record:forward")
            return 0
        return ends

    def _leave(self, ends: int, trains: bool) -> None:
        try:
            self._probe.recorder.mark(ends)
            if not trains or self._probe.boundary.never_trained:
                self._probe.boundary.ended(Kind.EVALUATE, self.slot)
        except Exception:  # the probe fails open
            self._probe.note("boundary")

    # Activations ---------------------------------------------------------------------------------------------------

    def _acted(self, plain: Any, args: Any, kwargs: Any) -> Any:
        if not self._activated and not self._activate():
            return plain(*args, **kwargs)
        args, kwargs = self._change_inputs(args, kwargs)
        call = self._wrapped_call or plain
        if not self._contexts:
            return self._change_output(call(*args, **kwargs))
        with ExitStack() as stack:
            for context in self._contexts:
                stack.enter_context(context)
            output = call(*args, **kwargs)
        return self._change_output(output)

    def _activate(self) -> bool:
        """Let the activations prepare the module, at its first training forward; return whether this is one."""
        module = self.module
        if not (self._inference() or any(parameter.requires_grad for parameter in module.parameters())):
            return False
        self._activated = True
        for activation in list(self._probe.activations):
            try:
                activation.on_root(module)
                context = activation.forward_context(module)
            except Exception:  # an optimization that fails is dropped, the program goes on
                self._probe.drop(activation, "on_root")
                continue
            if context is not None:
                self._contexts.append(context)
        self._inputs = self._probe.acting("on_forward_inputs")
        self._outputs = self._probe.acting("on_forward_output")
        return True

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

    def _inference(self) -> bool:
        anchor = self._probe.config.anchor
        return anchor is not None and anchor[0] == "forward"

    def _look(self, trains: bool, args: Any, kwargs: Any) -> None:
        """Keep from where the root is called."""
        sites, kind = self._probe.sites, "forward" if trains else "evaluate"
        self._looks_left -= trains and self._looks_left > 0
        if sites.open(kind):
            arguments = [*((None, value) for value in args), *kwargs.items()]
            described = [describe_argument(name, value) for name, value in arguments]
            self._site = sites.note(kind, type(self.module).__qualname__, slot=self.slot, arguments=described)

    # Facts ---------------------------------------------------------------------------------------------------------

    def _mark_size(self, args: Any, kwargs: Any) -> None:
        for value in args or kwargs.values():
            shape = getattr(value, "shape", None)
            if shape:
                if shape != self._shape:
                    tokens = value.numel() if len(shape) == 2 and not value.is_floating_point() else 0
                    self._shape, self._size_event = shape, size_event(shape[0], tokens)
                self._probe.recorder.raw(self._size_event)
                return

    def _note(self, args: Any, kwargs: Any) -> None:
        self._described = True
        self._learns = any(parameter.requires_grad for parameter in self.module.parameters())
        facts = self._probe.facts
        if self.slot < len(facts.roots) or len(facts.roots) > MAX_SLOT:
            return
        import torch

        compiled = self._hooked is not None and self._hooked.compiled is not None
        facts.roots.append(describe_root(self.module, args, kwargs, compiled=compiled))
        facts.distributed = facts.distributed or distributed_kind(self.module)
        if hasattr(self.module, "_get_ddp_logging_data"):
            facts.ddp_modules.append(self._module)
        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                facts.autocast_dtype = str(torch.get_autocast_dtype(device)).removeprefix("torch.")
        facts.shared_memory = facts.shared_memory or _shared(self.module)


def _shared(module: Any) -> bool:
    parameter = next(module.parameters(), None)
    return parameter is not None and parameter.device.type == "cpu" and parameter.is_shared()
