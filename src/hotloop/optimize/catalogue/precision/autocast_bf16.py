"""autocast_bf16: the forward in bfloat16 where that is safe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.knobs.within_forward import Gated
from hotloop.optimize.optimization import Optimization
from hotloop.optimize.reduced_precision.autocast import Autocast
from hotloop.optimize.reduced_precision.bfloat16 import expected_of_bfloat16
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite


class AutocastBf16(Optimization):
    """Run the forward under autocast to bfloat16.

    What it does: the root module's training forward runs inside `torch.autocast(device,
    dtype=torch.bfloat16)`. Matrix products and convolutions are computed in bfloat16; normalization, softmax
    and losses in fp32; parameters, gradients and the optimizer's state stay fp32. What the model returns is
    brought back to fp32, because many losses computed outside the model refuse half inputs. Where that is made of a
    sigmoid, sigmoids are computed in fp32 from the second forward on: a probability above 0.998 is 1 in bfloat16, and
    a loss of its distance from 1 is that of a hard error.

    Why it is faster: half the bytes move, and tensor cores (Ampere and newer), AMX and AVX512-BF16 units
    compute bfloat16 several times faster than fp32. Activations kept for the backward take half the memory.

    When it does not help: hardware without bfloat16 units (V100, T4, MI250X, older CPUs), where it is
    emulated; small layers, where the casts cost more than they save; models that are mostly pointwise or
    recurrent.

    Effect on numerics: 8 bits of mantissa instead of 24 in the products; the range is that of fp32, so no
    gradient scaling is needed. On only where the parity check passes. Double precision models are left alone.

    Example: `with torch.autocast("cuda", dtype=torch.bfloat16): output = model(batch)`

    References: torch.amp documentation; Micikevicius et al., Mixed Precision Training, 2018; Kalamkar et al.,
    A Study of BFLOAT16 for Deep Learning Training, 2019.
    """

    name: ClassVar[str] = "autocast_bf16"
    family: ClassVar[str] = "precision"
    numerics: ClassVar[Numerics] = Numerics.TOLERANCE
    saves_memory: ClassVar[bool] = True
    conflicts: ClassVar[frozenset[str]] = frozenset({"autocast_fp16", "lossy_in_half", "slow_in_half"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate, for a full-precision model."""
        return [self.candidate(prior=expected_of_bfloat16(observation))]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return autocast to bfloat16."""
        return Autocast("bfloat16")

    def knob(self, params: Mapping[str, Any]) -> Knob:
        """Return autocast behind a gate."""
        return Gated(self.activation(params))

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Put the forward and the loss under autocast."""
        from hotloop.optimize.reduced_precision.autocast_rewrite import rewrite_forwards

        return rewrite_forwards(source, sites, "bfloat16")

    def rewrite_beside(self, source: Editor, sites: Sites) -> Sequence[str]:
        """Keep the sigmoids that outputs are made of in fp32."""
        from hotloop.optimize.reduced_precision.sigmoid_rewrite import keep_sigmoids_in_fp32

        return keep_sigmoids_in_fp32(source, sites)
