"""created_on_device: tensors are made where they are used, and moved once."""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.compute.created_on_device.activation import DeviceMade
from hotloop.optimize.catalogue.compute.created_on_device.pattern import moves_of
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.program.bounds import expected
from hotloop.optimize.program.source_calls import program_files
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite


class CreatedOnDevice(Optimization):
    """Make tensors on the device that uses them, and move what does not change once.

    What it does: `torch.zeros(n).to(device)` and the like (ones, empty, full, arange, linspace, eye) are made on the
    device; each line is first seen to give the same values there. A `.to(device)` on a tensor of the host that the
    loop does not change gives back what it gave before, as long as neither tensor has changed: the values on the host
    are compared, because numpy may change them unseen. The program runs changed as it is read; no file is.

    Why it is faster: making a tensor on the host fills memory there, and its copy stops the host until the device has
    come by it. Made on the device it is one kernel launch; moved before it is nothing.

    When it does not help: on the CPU; in code that torch.compile has compiled. Random numbers are left alone, the
    device would draw others, and so is what is changed in place after it was moved, or needs gradients.

    Effect on numerics: none.

    Example: `mask = torch.zeros(n, n, device=device)`

    References: PyTorch performance tuning guide, "Create tensors directly on the target device".
    """

    name: ClassVar[str] = "created_on_device"
    family: ClassVar[str] = "compute"
    numerics: ClassVar[Numerics] = Numerics.EXACT
    edits_source: ClassVar[bool] = True
    conflicts: ClassVar[frozenset[str]] = frozenset({"compile"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate where the step makes or moves such a tensor."""
        if observation.program.device == "cpu":
            raise DoesNotApply("the program computes on the CPU, where its tensors are made")
        if any(root.compiled for root in observation.program.roots):
            raise DoesNotApply("the program compiles its model, whose code must stay as it is")
        lines = _lines(observation)
        if not lines:
            raise DoesNotApply(
                "no line makes a tensor on the host and moves it, or moves one that does not change"
            )
        step = observation.step.median_s if observation.step is not None else None
        seconds = _seconds(observation, lines)
        if seconds == 0.0:
            raise DoesNotApply("the lines that make and move tensors were not seen in the step")
        share = min(seconds / step, 0.5) if step and seconds else None
        return [self.candidate(prior=expected(share, 10.0) if share is not None else 1.02)]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what changes the source as it is read."""
        return DeviceMade(at_once=True)

    def knob(self, params: Mapping[str, Any]) -> Knob:
        """Return the same, doing as the program has it while it is off."""
        return DeviceMade(at_once=False)

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Give factories their `device`, and move what a loop does not change before it."""
        from hotloop.optimize.catalogue.compute.created_on_device.rewrite import make_on_device

        return make_on_device(source)


def _lines(observation: Observation) -> set[tuple[str, int]]:
    found: set[tuple[str, int]] = set()
    for path, text in program_files(observation):
        try:
            moves = moves_of(ast.parse(text))
        except SyntaxError:
            continue
        found |= {(os.path.abspath(path), move.call.lineno) for move in moves}
    return found


def _seconds(observation: Observation, lines: set[tuple[str, int]]) -> float | None:
    """Return what a step spends at the lines; None: nobody looked."""
    deep = observation.deep
    if deep is None or deep.call_sites is None:
        return None
    return sum(
        site.time_per_step_s
        for site in deep.call_sites.sites
        if site.kind in {"create", "copy"} and (os.path.abspath(site.path), site.line) in lines
    )
