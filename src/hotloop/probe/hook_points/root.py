"""One root module: how its calls are recorded, and what the activations do to its forward."""

from __future__ import annotations

import math
import weakref
from functools import partial
from time import monotonic_ns
from typing import Any, Protocol

from hotloop.probe.frameless import call_that
from hotloop.probe.hook_points.changed_call import ChangedCall, shortest
from hotloop.probe.hook_points.main_input import main_input
from hotloop.probe.hook_points.requests import Requests
from hotloop.probe.hook_points.root_hook import PLACE, Hook
from hotloop.probe.hook_points.sequence_model import reads_sequences
from hotloop.probe.hook_points.wrappers import parts_with_all
from hotloop.probe.probe import Probe
from hotloop.probe.record.events import MAX_SLOT, TIME_SHIFT, Kind, begin, end, size_event
from hotloop.probe.record.facts import (
    describe_argument,
    describe_output,
    describe_root,
    distributed_kind,
    is_described,
    is_symbolic,
    num_values,
)
from hotloop.probe.record.invariants import Invariants
from hotloop.probe.record.outputs import Outputs
from hotloop.probe.record.perturbation import perturb
from hotloop.probe.tracers import reader, transforms

LOOKS = 8
"""Training calls of a root whose call sites are kept: a GAN calls its discriminator from three lines."""


class Surroundings(Protocol):
    """What a root asks of the roots that it belongs to."""

    inside: bool
    searching: bool
    infers: bool
    requests: Requests

    def forget(self, root: Root) -> None:
        """Take a module for unknown again."""

    def own_call(self) -> bool:
        """Whether a call belongs to the thread that is recorded, in a process that is not asleep."""


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
        self.is_traced = reader()
        self._is_transformed = transforms()
        self.calls = 0
        """Those that may be a step's: with gradients, or, as long as nothing was trained, any."""
        self.slot = min(slot, MAX_SLOT)
        self.kind = (type(module).__name__, num_values(module.parameters()))
        self.cls = type(module)
        self._parts = [weakref.ref(part) for part in parts_with_all(module)]
        self._described = False
        self._site: dict[str, Any] | None = None
        """What is known of the call site of the call under way, if it is looked at."""
        self._looks_left = LOOKS if probe.sites.wanted else 0
        anchor = probe.config.anchor
        self._perturbed = not probe.config.perturb
        self._steps_alone = anchor is not None and anchor[0] == "backward"
        """No optimizer takes the program's steps."""
        self._learns = True
        """Whether some parameter does; a frozen teacher in evaluation mode keeps no graph of its own."""
        self._shape: Any = ()
        self._size_event = size_event(0, 0)
        self._sequences: bool | None = None
        """Whether the module reads sequences; None: not asked yet."""
        self._changed = ChangedCall(probe, self._module, infers=roots.infers, on_ready=self.wrap_call)
        self._hooked: Hook | None = None
        self._call = call_that(self._leave)
        self._ends = 0
        self._trains = True
        """Of the call under way: the mark of its end, and whether it keeps a graph."""
        # begin and end of a forward without and with gradients, and with them in evaluation mode
        self._codes = tuple(
            (begin(kind, self.slot), end(kind, self.slot))
            for kind in (Kind.EVALUATE, Kind.FORWARD, Kind.SCORE)
        )

    @property
    def module(self) -> Any:
        """The module; None when it is gone."""
        return self._module()

    def outlived_by(self) -> Any:
        """Return the part with all its parameters that is still there; None: it is not gone, or no such part is."""
        if self.module is not None:
            return None
        return next((part for each in self._parts if (part := each()) is not None), None)

    def hook(self) -> None:
        """Put the recording hook into the module."""
        module = self.module
        self._hooked = Hook(self, module, module.__dict__.get(PLACE))
        module.__dict__[PLACE] = self._hooked

    def unhook(self) -> None:
        """Leave the module as it was, if the hook is still in its place."""
        module = self.module
        if module is not None and self._hooked is not None and module.__dict__.get(PLACE) is self._hooked:
            self._hooked.leave(module)

    def keep_hooked(self) -> None:
        """Hook again if the program compiled the module in place meanwhile, or the hook had left it."""
        module = self.module
        if module is not None and module.__dict__.get(PLACE) is not self._hooked:
            self.hook()

    def wrap_call(self) -> None:
        """Let the activations replace the call (compilation), once the search for roots is over."""
        if not self._roots.searching and self._hooked is not None:
            self._changed.wrap(self._hooked.compiled)

    def begin(self, plain: Any, args: Any, kwargs: Any) -> Any:
        """Mark the beginning of a call; return what is to be called, which marks its end when it goes."""
        trains, acts = self.grad_enabled(), bool(self._probe.activations)
        if trains and not acts and self._probe.recorder.lean:
            self.calls += 1
            return plain
        if self._roots.inside or not self._roots.own_call():
            return plain
        for told in self._probe.on_root_call:
            told(self.module, args, kwargs)
        if not self._described and is_symbolic(args, kwargs):
            self._roots.forget(self)
            self._ends, self._roots.inside = 0, True
            return self._call(plain)
        if trains and not acts and self._is_as_before(args):
            self._ends = self._codes[1][1]
        else:
            self._ends = self._enter(trains, args, kwargs)
        self._trains = trains
        site, self._site = self._site, None
        self._roots.inside = True
        acts = acts and (trains or self._roots.infers) and not self._is_transformed()
        outputs = self._probe.outputs
        if outputs is not None and self._ends and not outputs.full and not self._probe.capturing():
            return self._call(self._kept, outputs, plain, acts)
        invariants = self._probe.invariants
        if invariants is not None and trains and self._ends and not invariants.enough_forwards:
            return self._call(self._checked, invariants, plain, acts)
        if acts:
            return self._call(self._changed, plain)
        if site is not None and "returns" not in site:
            return self._call(self._looked_at, plain, site)
        return self._call(plain)

    def failed(self) -> None:
        """Keep the exception that is being handled."""
        self._probe.note("record:forward")

    def _is_as_before(self, args: Any) -> bool:
        """Whether this call is like the one before it; then its beginning is marked, in one frame."""
        probe, recorder = self._probe, self._probe.recorder
        try:
            if (
                not self._described
                or self._looks_left
                or probe.in_backward
                or not (args and self._shape)
                or args[0].shape != self._shape
                or (self._learns and not self._module().training)  # type: ignore[union-attr]
            ):
                return False
            recorder.append(self._size_event)
            recorder.append((monotonic_ns() - recorder.base) << TIME_SHIFT | self._codes[1][0])
        except Exception:  # no shape; what else may fail, fails again in `_enter`, which says so
            return False
        self.calls += 1
        return True

    def _enter(self, trains: bool, args: Any, kwargs: Any) -> int:
        """Mark the beginning; return the mark of the end, 0: not recorded (a recomputation, part of the backward)."""
        try:
            if self._probe.in_backward:
                return 0
            recorder = self._probe.recorder
            self.calls += trains or self._roots.infers or self._probe.boundary.never_trained
            if self._probe.boundary.starts and (trains or self._roots.infers):
                self._probe.boundary.before_first_forward()
            if not trains:
                self._probe.boundary.pace.wake()
            elif recorder.lean:
                return 0
            if not self._described and not self._is_transformed():
                self._note(args, kwargs)
            if self._looks_left or not trains:
                self._look(trains, args, kwargs)
            self._mark_size(args, kwargs, trains=trains)
            scores = trains and self._learns and not self.module.training
            begins, ends = self._codes[2 if scores else trains]
            recorder.mark(begins)
        except Exception:  # the probe fails open
            self._probe.note("record:forward")
            return 0
        return ends

    def _leave(self) -> None:
        self._roots.inside = False
        if not self._ends:
            return
        try:
            self._probe.recorder.mark(self._ends)
            if not self._trains or self._probe.boundary.never_trained:
                self._probe.boundary.ended(Kind.EVALUATE, self.slot)
        except Exception:  # the probe fails open
            self._probe.note("boundary")

    def _looked_at(self, plain: Any, site: dict[str, Any], /, *args: Any, **kwargs: Any) -> Any:
        """Keep what the root returns; stands where `Module._call_impl` would, as `ChangedCall` does."""
        output = shortest(self.module, plain)(*args, **kwargs)
        with self._probe.survive("sites.returns"):
            site["returns"] = describe_output(output)
        return output

    def _kept(self, outputs: Outputs, plain: Any, acts: bool, /, *args: Any, **kwargs: Any) -> Any:
        """Keep a sketch of what goes in and comes out, off the clock."""
        probe, given = self._probe, None
        with probe.survive("outputs"), probe.boundary.clock.still():
            if not self._perturbed:
                self._perturbed = True
                perturb(self.module.parameters(), probe.config.perturb, probe.config.perturb_number)
            given = outputs.given(args, kwargs)
        output = self._callee(plain, acts)(*args, **kwargs)
        if given is not None:
            with probe.survive("outputs"), probe.boundary.clock.still():
                outputs.keep(self.slot, given, output, continues=self._roots.requests.continues)
        return output

    def _checked(self, invariants: Invariants, plain: Any, acts: bool, /, *args: Any, **kwargs: Any) -> Any:
        """Look at what a training forward is given, and whether it draws random numbers, off the clock."""
        probe, module, generators = self._probe, self.module, None
        if not probe.capturing() and not self._is_transformed():
            with probe.survive("invariants"), probe.boundary.clock.still():
                if probe.perturbation is not None:
                    if self._steps_alone and not self._perturbed and invariants.went_back:
                        self._perturbed = True
                        probe.perturbation.put_noise(module.parameters())
                    probe.perturbation.before_forward()
                generators = invariants.before(module, args, kwargs)
        output = self._callee(plain, acts)(*args, **kwargs)
        if generators is None:
            invariants.stop()
            return output
        with probe.survive("invariants"), probe.boundary.clock.still():
            invariants.after(module, generators)
        return output

    def _callee(self, plain: Any, acts: bool) -> Any:
        """Return what stands where `Module._call_impl` would: the call, changed by the activations if it acts."""
        return partial(self._changed, plain) if acts else shortest(self.module, plain)

    def _look(self, trains: bool, args: Any, kwargs: Any) -> None:
        """Keep from where the root is called."""
        sites, kind = self._probe.sites, "forward" if trains else "evaluate"
        self._looks_left -= trains and self._looks_left > 0
        if sites.open(kind):
            arguments = [*((None, value) for value in args), *kwargs.items()]
            described = [describe_argument(name, value) for name, value in arguments]
            self._site = sites.note(kind, type(self.module).__qualname__, slot=self.slot, arguments=described)

    # Facts ---------------------------------------------------------------------------------------------------------

    def _mark_size(self, args: Any, kwargs: Any, *, trains: bool) -> None:
        value = main_input(args, kwargs)
        shape = getattr(value, "shape", ())
        is_text = len(shape) == 2 and not value.is_floating_point() and self._reads_text(kwargs)
        never_trained = self._probe.boundary.never_trained
        if not trains or never_trained:
            self._roots.requests.forward(shape, is_text=is_text)
        if not shape:
            return
        if shape == self._shape:
            self._probe.recorder.raw(self._size_event)
            return
        event = size_event(shape[0], value.numel() if is_text else 0)
        self._probe.recorder.raw(event)
        if not trains and not never_trained:
            return  # batches of an evaluation are often of another size
        if self._shape and self.slot < len(self._probe.facts.roots):
            facts = self._probe.facts.roots[self.slot]
            facts["largest_shape"] = max(facts.get("largest_shape", ()), tuple(self._shape), key=math.prod)
            if shape[1:] != self._shape[1:]:
                facts["shapes_vary"] = True
        self._shape, self._size_event = shape, event

    def _reads_text(self, kwargs: Any) -> bool:
        if self._sequences is None:
            self._sequences = "input_ids" in kwargs or reads_sequences(self.module)
        return self._sequences

    def _note(self, args: Any, kwargs: Any) -> None:
        self._described = True
        self._learns = any(parameter.requires_grad for parameter in self.module.parameters())
        facts = self._probe.facts
        before = facts.roots[self.slot : self.slot + 1]
        if (before and is_described(self.module, before[0])) or len(facts.roots) > MAX_SLOT:
            return
        compiled = self._hooked is not None and self._hooked.compiled is not None
        described = describe_root(self.module, args, kwargs, compiled=compiled)
        facts.roots[self.slot : self.slot + 1] = [described]  # in place of a wrapper of this module
        facts.distributed = facts.distributed or distributed_kind(self.module)
        if hasattr(self.module, "_get_ddp_logging_data"):
            facts.ddp_modules.append(self._module)
        facts.look_at_autocast()
        facts.shared_memory = facts.shared_memory or _shared(self.module)


def _shared(module: Any) -> bool:
    parameter = next(module.parameters(), None)
    return parameter is not None and parameter.device.type == "cpu" and parameter.is_shared()
