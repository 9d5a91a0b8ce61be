"""slow_in_half: autocast, with the modules left out that are slower in half precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.precision.slow_in_half.activation import SlowModules
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.reduced_precision.bfloat16 import require_bfloat16
from hotloop.probe.activation.activation import Activation

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

MORE = 1.05
"""Beside autocast alone, which is tried before: most models have little that is slower in half."""
_SIMPLE = frozenset(
    {"Linear", "Conv1d", "Conv2d", "Conv3d", "ReLU", "Flatten", "Dropout", "Identity", "Tanh", "Sigmoid"}
)
"""Layers that were not seen to be slower in half; a model of nothing else is not tried."""


class SlowInHalf(Optimization):
    """Run the forward under autocast to bfloat16, without the modules that are slower in it.

    What it does: as autocast_bf16; in the first training forward each module without children is run by itself on the
    inputs that it was just given, forward and backward, five times in bfloat16 and five times in fp32, in turns. Those
    that took at least 1.1 times as long in bfloat16 run outside of autocast from then on, on inputs in fp32.

    Why it is faster: where a library has no fast half-precision kernel (some normalizations, poolings, upsamplings,
    recurrent cells and embeddings, on CPUs and on ROCm), autocast makes that part of the model slower.

    When it does not help: nothing is slower in half, which the trial says; modules whose neighbours then have to cast
    to and fro.

    Effect on numerics: closer to fp32 than autocast_bf16. On only where the parity check passes.

    Example: `with torch.autocast(device, enabled=False): x = self.norm(x.float())`

    References: Feilian-3D performance guide, 8.2 (operations slower in FP16 on ROCm); torch.amp documentation,
    "autocast(enabled=False) subregions can be nested in autocast-enabled regions".
    """

    name: ClassVar[str] = "slow_in_half"
    family: ClassVar[str] = "precision"
    numerics: ClassVar[Numerics] = Numerics.TOLERANCE
    conflicts: ClassVar[frozenset[str]] = frozenset({"autocast_bf16", "autocast_fp16", "lossy_in_half"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate, for a model that has more than matrix products and convolutions."""
        require_bfloat16(observation)
        layers = {name for root in observation.program.roots for name in root.layer_counts}
        if layers <= _SIMPLE:
            raise DoesNotApply(
                f"the model's layers ({', '.join(sorted(layers)) or 'none'}) are not slower in half"
            )
        return [self.candidate(prior=MORE)]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return autocast with modules left out."""
        return SlowModules("bfloat16")

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Refuse: which modules are slower is this machine's matter, and measured when the program starts."""
        from hotloop.source.outcome import Refused

        return Refused(
            "which modules are slower in bfloat16 is measured on each machine when the program starts",
            "in the forward of such a module, under autocast around the whole:\n"
            "with torch.autocast(x.device.type, enabled=False):\n"
            "    x = self.norm(x.float())",
        )
