"""The probe of one process: what the hook points share."""

from __future__ import annotations

import atexit
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.order import made_to_order
from hotloop.probe.control.control_page import ControlPage
from hotloop.probe.control.step_boundary import Boundary
from hotloop.probe.process.config import ProbeConfig
from hotloop.probe.record.events import BOOKKEEPING, Kind, begin, end
from hotloop.probe.record.facts import Facts
from hotloop.probe.record.invariants import Invariants
from hotloop.probe.record.losses import Losses
from hotloop.probe.record.outputs import Outputs
from hotloop.probe.record.perturbation import Perturbation
from hotloop.probe.record.recorder import Recorder
from hotloop.probe.record.sites import CallSites

INFERRING = frozenset({"forward", "request"})
"""Kinds of anchor of a program that trains nothing."""
MAX_NOTES = 32
"""Places that may report a failure; there are about as many hook points."""


class Probe:
    """Recorder, boundary, facts and activations of this process.

    Args:
        config: the orders.
    """

    def __init__(self, config: ProbeConfig) -> None:
        self.config = config
        self.folder = Path(config.folder) if config.folder else None
        if config.followers and self.folder is None:
            self.recorder = Recorder(Path(os.devnull), discards=True)
        else:
            self.recorder = Recorder(self.folder if config.record else None)
        self.sites = CallSites(wanted=config.sites and self.folder is not None)
        self.facts = Facts(self.sites)
        self.losses = Losses(self.folder) if config.losses and self.folder else None
        infers = config.anchor is not None and config.anchor[0] in INFERRING
        self.outputs = Outputs(self.folder) if config.losses and infers and self.folder else None
        self.invariants = Invariants() if config.losses and not infers and self.folder else None
        self.perturbation = Perturbation(config) if config.perturb else None
        self.activations: list[Activation] = []
        self.page = self._page()
        self.boundary = Boundary(
            config.anchor,
            self.folder,
            self.recorder,
            self.page,
            lean=config.lean and not config.follow_memory,
        )
        self.boundary.on_look.append(self.facts.page_faults.look)
        if self.folder is not None:
            self.boundary.on_look.append(lambda _: self.facts.sample_communication())
        self.boundary.on_look.append(self._on_look)
        self.boundary.on_hold.append(self._on_hold)
        self._noted: set[str] = set()
        self._facts_at = 1
        self.uses_compile = False
        """`torch.compile` has begun to work."""
        self.on_compile: list[tuple[Callable[[], None], Callable[[], None]]] = []
        """Called before torch.compile reads code, and after it; filled once its compiler has been imported."""
        self.in_backward = False
        """A backward is running: modules that are called now compute something again."""
        self.on_root_call: list[Callable[[Any, Any, Any], None]] = []
        """Called with a root module and its arguments before its call."""
        self.asleep = False
        """True in a forked child that has not trained: its hook points do nothing (loader workers)."""

    def _page(self) -> ControlPage | None:
        path = self.folder / "control" if self.folder else None
        return ControlPage(path) if path and path.exists() else None

    def compiles(self) -> bool:
        """Whether the program compiles: what compiled code has read must stay as it was, or it is compiled again."""
        utils = sys.modules.get("torch._dynamo.utils")
        return self.uses_compile or (utils is not None and bool(utils.counters.get("frames")))

    def capturing(self) -> bool:
        """Whether a graph is being captured: nothing may be asked of the device then."""
        device = self.facts.device
        return device is not None and device.in_use() and device.capturing()

    def load_activations(self, made: Mapping[int, Activation] = MappingProxyType({})) -> None:
        """Import and make what the plan names; one that fails is noted and left out.

        Args:
            made: what was made before torch was imported, by its number in the plan.
        """
        for number, order in enumerate(self.config.activations):
            with self.survive(f"activation:{order['name']}"):
                activation = made[number] if number in made else made_to_order(order)
                if activation is not None:
                    self.activations.append(activation)

    def acting(self, hook: str) -> list[Activation]:
        """Return the activations that do something at this hook point."""
        return [activation for activation in self.activations if activation.overrides(hook)]

    def drop(self, activation: Activation, where: str) -> None:
        """Switch off an activation that raised; the program goes on without it."""
        self.note(f"activation:{activation.name}:{where}")
        if activation in self.activations:
            self.activations.remove(activation)

    def note(self, where: str) -> None:
        """Keep the exception being handled, the first of each place: a hook point may fail at every step."""
        if where not in self._noted and len(self._noted) < MAX_NOTES:
            self._noted.add(where)
            self.facts.notes.append({"where": where, "error": traceback.format_exc(limit=-4)})

    def survive(self, where: str) -> _Survive:
        """Return a context in which our own failures are noted and swallowed."""
        return _Survive(self, where)

    def at_exit(self) -> None:
        """Write what is pending, where this process did anything at all (helpers import torch too)."""
        with self.survive("exit"):
            if self.boundary.windows is not None:
                self.boundary.windows.finish()
            if self.recorder.thread or self.facts.notes:
                with self.survive("record:exit"):
                    if self.recorder.catch_up is not None:
                        self.recorder.catch_up()
                    self.recorder.mark(end(Kind.EXIT))
                self.recorder.flush()
                self.write_facts()

    def write_facts(self) -> None:
        """Write the facts of this process, effects of the activations included."""
        if self.folder is None:
            return
        effects = []
        for activation in self.activations:
            with self.survive(f"effect:{activation.name}"):
                on, evidence = activation.effect()
                effects.append({"name": activation.name, "on": bool(on), "evidence": evidence})
        self.facts.other_trainers = self.recorder.other_trainers
        if self.invariants is not None:
            with self.survive("invariants"):
                self.facts.invariants = self.invariants.seen()
        self.facts.write(self.folder, effects, self.boundary.steps)
        if self.losses:
            self.losses.flush()
        if self.outputs:
            self.outputs.flush()

    def _on_look(self, steps: int) -> None:
        """Write facts early and then ever more rarely; the time it takes is no part of the step."""
        if self.folder is not None and steps >= self._facts_at:
            self._facts_at = max(5, steps * 4)
            with self.survive("facts"), self.boundary.clock.still():
                self.recorder.mark(begin(Kind.PAUSE, BOOKKEEPING))
                self.write_facts()
                self.recorder.mark(end(Kind.PAUSE, BOOKKEEPING))

    def _on_hold(self) -> None:
        """Write facts; the program may be ended while it is held, with its output still in Python's buffers."""
        with self.survive("facts"):
            self.write_facts()
        for stream in (sys.stdout, sys.stderr):
            with self.survive("output"):
                stream.flush()

    def after_fork(self) -> None:
        """In a forked child: sleep until it trains by itself."""
        self.asleep = True
        self.recorder.after_fork()
        self.boundary.after_fork()
        self.facts.page_faults.after_fork()
        if self.losses:
            self.losses.after_fork()
        if self.outputs:
            self.outputs.after_fork()

    def watch_process(self) -> None:
        """Flush at exit, sleep after a fork."""
        atexit.register(self.at_exit)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.after_fork)


class _Survive:
    """Swallows and notes what goes wrong in our own code.

    The one broad catch of the probe: whatever of ours fails inside the user's process must not reach the program.
    """

    def __init__(self, probe: Probe, where: str) -> None:
        self._probe = probe
        self._where = where

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        if kind is None or not issubclass(kind, Exception):
            return False
        self._probe.note(self._where)
        return True
