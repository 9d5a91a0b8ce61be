"""lossy_in_half: autocast, with the modules left out that lose most in half precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.precision.lossy_in_half.activation import LossyModules
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.reduced_precision.bfloat16 import require_bfloat16
from hotloop.probe.activation.activation import Activation

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

MORE = 1.02
"""Behind autocast alone and what is faster than it: it is for models whose parity fails by a little."""

LEAST_LAYERS = 4
"""A quarter of fewer is none."""


class LossyInHalf(Optimization):
    """Run the forward under autocast to bfloat16, without the modules that lose most in it.

    What it does: as autocast_bf16; in the first training forward each module without children is run by itself on the
    inputs that it was just given, forward and backward, in bfloat16 and in fp32. Those whose outputs or gradients are
    off by more than 1.6% (at most a quarter of the modules, the worst first) run outside of autocast from the next
    forward on, on inputs in fp32. It is tried in place of autocast_bf16 or slow_in_half where they do not pass the
    parity check.

    Why it is faster: than fp32, because the rest of the model is in bfloat16. It is for models that autocast alone
    changes too much: often one head or one layer does, whose large terms cancel.

    When it does not help: nothing loses much, which the trial says; what is lost between modules, in operations that no
    module makes; autocast alone keeps parity: then it is faster.

    Effect on numerics: closer to fp32 than autocast_bf16. On only where the parity check passes.

    Example: `with torch.autocast(device, enabled=False): x = self.head(x.float())`

    References: torch.amp documentation, "autocast(enabled=False) subregions can be nested in autocast-enabled regions";
    Micikevicius et al., Mixed Precision Training, 2018.
    """

    name: ClassVar[str] = "lossy_in_half"
    family: ClassVar[str] = "precision"
    numerics: ClassVar[Numerics] = Numerics.TOLERANCE
    conflicts: ClassVar[frozenset[str]] = frozenset({"autocast_bf16", "autocast_fp16", "slow_in_half"})
    stands_in_for: ClassVar[frozenset[str]] = frozenset({"autocast_bf16", "slow_in_half"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate, for a model of several layers."""
        require_bfloat16(observation)
        if (
            sum(num for root in observation.program.roots for num in root.layer_counts.values())
            < LEAST_LAYERS
        ):
            raise DoesNotApply("the model has too few layers to leave one out")
        return [self.candidate(prior=MORE)]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return autocast with modules left out."""
        return LossyModules("bfloat16")

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Refuse: which modules lose most is measured on what the program gives them."""
        from hotloop.source.outcome import Refused

        return Refused(
            "which modules lose most in bfloat16 is measured when the program starts",
            "in the forward of such a module, under autocast around the whole:\n"
            "with torch.autocast(x.device.type, enabled=False):\n"
            "    x = self.head(x.float())",
        )
