"""deferred_sync: values that are only logged or added up come a step later."""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.deep import CallSite
from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.compute.deferred_sync.activation import LaterValues
from hotloop.optimize.catalogue.compute.deferred_sync.source_edit import plans_of
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.program.bounds import expected
from hotloop.optimize.program.source_calls import program_files
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

SHOWN = 4
"""Reasons that a refusal names."""
WAITING_HELPS = 0.5
"""Of the time at such a line: the rest is work that the device has to do anyway (as `sync-in-step` has it)."""


class DeferredSync(Optimization):
    """Let values that are only logged or added up come a step later, while the device goes on.

    What it does: statements of a loop that ask for a tensor's value (`.item()`, `.tolist()`, `.cpu()`, `float()`) to
    print it, log it, append it or add it up start its copy to the host and wait in a queue; they run in their order
    when the copy is there, one step later at the latest, and all of them when the loop ends, however it ends. What
    else such a statement says (the step's number, the learning rate) is evaluated where it stands. Code that reads
    what they write runs after them. It is decided from the source: where a value decides a branch, goes to a
    scheduler or the optimizer, leaves the function or names a file, the line stays as it is, with the reason.
    The program runs changed as it is read; no file is.

    Why it is faster: kernels are queued ahead of the device, which hides the cost of Python. Asking for a value waits
    until the queue is empty, and the device then idles until it fills again.

    When it does not help: on the CPU, where values are there at once; lines that few steps come by; steps so long that
    the host's part of them does not show. Progress is shown a step late, except that of a loop's last turn. What
    asks for values inside a library, or prints a whole tensor, is not changed.

    Effect on numerics: none; each statement computes what it would have.

    Example: `total += loss.detach()` in the loop, `total.item()` behind it

    References: PyTorch performance tuning guide, "Avoid unnecessary CPU-GPU synchronization".
    """

    name: ClassVar[str] = "deferred_sync"
    family: ClassVar[str] = "compute"
    numerics: ClassVar[Numerics] = Numerics.EXACT
    touches_numbers: ClassVar[bool] = False
    edits_source: ClassVar[bool] = True

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate where a line waits for a device and can be put off."""
        if observation.program.device == "cpu":
            raise DoesNotApply("the program computes on the CPU, where a value is there when it is asked for")
        if observation.program.device != "cuda":
            raise DoesNotApply(f"values on {observation.program.device} devices cannot be sent ahead")
        later, kept = _lines(observation)
        waits = _waits(observation)
        if waits is not None and not waits:
            raise DoesNotApply("no line of the step waits for a value of the device")
        at = later if waits is None else {place for place in later if place in waits}
        if not at:
            asked = [place for place in kept if waits is None or place in waits]
            reasons = [f"{os.path.basename(path)}:{line}: {kept[path, line]}" for path, line in asked]
            said = "; ".join(reasons[:SHOWN]) or "no statement that only logs or adds up asks for it"
            raise DoesNotApply(f"what the step waits for cannot come later: {said}")
        step = observation.step.median_s if observation.step is not None else None
        seconds = sum(site.time_per_step_s for place, site in (waits or {}).items() if place in at)
        share = min(WAITING_HELPS * seconds / step, 0.5) if step and waits else None
        return [self.candidate(prior=expected(share, 1e9) if share is not None else 1.05)]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what changes the source as it is read."""
        return LaterValues(at_once=True)

    def knob(self, params: Mapping[str, Any]) -> Knob:
        """Return the same, asking at once while it is off."""
        return LaterValues(at_once=False)

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Add up on the device, and read the sum behind the loop; what is printed in each step is left."""
        from hotloop.optimize.catalogue.compute.deferred_sync.rewrite import add_up_on_device

        return add_up_on_device(source)


Line = tuple[str, int]


def _lines(observation: Observation) -> tuple[set[Line], dict[Line, str]]:
    """Return the lines that can wait, and why others cannot."""
    later: set[Line] = set()
    kept: dict[Line, str] = {}
    for name, text in program_files(observation):
        path = os.path.abspath(name)
        try:
            plans = plans_of(ast.parse(text))
        except SyntaxError:
            continue
        for plan in plans:
            for each in plan.waiting:
                lines = range(each.statement.lineno, (each.statement.end_lineno or each.statement.lineno) + 1)
                later |= {(path, line) for line in lines}
            kept |= {(path, line): reason for line, reason in plan.kept.items()}
    return later, kept


def _waits(observation: Observation) -> dict[Line, CallSite] | None:
    """Return the lines that were seen to wait for a device; None: nobody looked."""
    deep = observation.deep
    if deep is None or deep.call_sites is None:
        return None
    return {
        (os.path.abspath(site.path), site.line): site
        for site in deep.call_sites.sites
        if site.kind == "sync" and site.device != "cpu" and not site.loading
    }
