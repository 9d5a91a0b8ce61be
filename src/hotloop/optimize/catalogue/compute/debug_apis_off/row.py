"""debug_apis_off: anomaly detection, NVTX ranges, legacy profilers and gradcheck made inert."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.compute.debug_apis_off.activation import DebugCalls
from hotloop.optimize.catalogue.compute.debug_apis_off.knob import AnomalyKnob
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite


class DebugApisOff(Optimization):
    """Make the debugging tools that a program left on do nothing.

    What it does: `torch.autograd.detect_anomaly` and `set_detect_anomaly`, `torch.autograd.profiler.profile`,
    `emit_nvtx` and `emit_itt`, `torch.autograd.gradcheck` and `gradgradcheck` can be called as before, and do
    nothing: contexts are entered and left, a profile is empty, gradcheck answers True. `torch.profiler` is
    left alone, its traces are somebody's result.

    Why it is faster: anomaly detection formats the Python stack of every operation of the forward and looks
    for NaN after every operation of the backward; the profilers note every operation; gradcheck evaluates the
    function twice for each input element.

    When it does not help: none of them is on. It takes the safety net away: a NaN in the backward is no
    longer an error at the operation that made it, so keep it on while a program is being debugged.

    Effect on numerics: none.

    Example: take `torch.autograd.set_detect_anomaly(True)` out of the script, or put it behind an option.

    References: PyTorch performance tuning guide, "Disable debugging APIs"; Lightning issue 17359.
    """

    name: ClassVar[str] = "debug_apis_off"
    family: ClassVar[str] = "compute"
    numerics: ClassVar[Numerics] = Numerics.EXACT
    touches_numbers: ClassVar[bool] = False

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate, where anomaly detection was seen on."""
        if not observation.program.anomaly_mode:
            raise DoesNotApply("no debugging API was seen on (anomaly detection is off)")
        # 3.0x was measured on a small script with a deep loop (peers), 1.2x is usual on larger operations.
        return [self.candidate(prior=2.0)]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what intercepts the calls."""
        return DebugCalls()

    def knob(self, params: Mapping[str, Any]) -> Knob:
        """Return what holds anomaly detection off; it is all that candidates are proposed for."""
        return AnomalyKnob()

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Switch anomaly detection off where it is switched on."""
        from hotloop.optimize.catalogue.compute.debug_apis_off.rewrite import rewrite_debug

        return rewrite_debug(source, sites)
