"""conv_bias_off: no bias where batch norm takes it away again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.compute.conv_bias_off.activation import BiasSkip
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.program.bounds import expected, share
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite


class ConvBiasOff(Optimization):
    """Leave out a convolution's bias where batch norm takes it away again.

    What it does: the first training forward shows which convolution's output is what a batch norm is given. While
    that norm uses the statistics of the batch, the convolution runs without its bias, the bias gets the gradient that
    is true of it, zero, and the running mean what the bias would have put into it. Parameters, buffers and the keys
    of checkpoints stay, and evaluation uses the bias as ever. Each part of the model is run both ways on its own
    inputs before it is on: a model that also uses a convolution's output elsewhere is left alone.

    Why it is faster: the whole activation is not read once more to sum the bias's gradient, nor read and written
    again to add the bias where the convolution's kernel does not do that itself.

    When it does not help: convolutions with bias=False, as most published networks with batch norm have; batch norm
    that is frozen (`eval()`) while the model trains, because the bias then counts; layers with an activation between
    convolution and norm. A compiled model keeps its bias.

    Effect on numerics: none but rounding. Without it, what rounding leaves of the gradient moves the bias, which
    changes nothing. The patch takes the parameter out of the model: checkpoints from before no longer fit.

    Example: `nn.Sequential(nn.Conv2d(3, 64, 3, bias=False), nn.BatchNorm2d(64))`

    References: PyTorch performance tuning guide, "Disable bias for convolutions directly followed by a batch norm".
    """

    name: ClassVar[str] = "conv_bias_off"
    family: ClassVar[str] = "compute"
    numerics: ClassVar[Numerics] = Numerics.TOLERANCE
    conflicts: ClassVar[frozenset[str]] = frozenset({"compile"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate where a trained model has such a bias."""
        roots = observation.program.roots
        counted = [root for root in roots if root.biased_before_norm is not None]
        biased = [root for root in counted if root.biased_before_norm]
        if roots and not counted:
            raise DoesNotApply("this observation does not say which convolutions have a bias: observe again")
        if not biased:
            raise DoesNotApply(
                "no convolution with a bias that is learned has batch norm of its width behind it"
            )
        if not any(root.training for root in biased):
            raise DoesNotApply("the model trains in evaluation mode, where batch norm does not cancel a bias")
        if any(root.compiled for root in biased):
            raise DoesNotApply("the program compiles its model, whose code then has the bias in it")
        part = share(observation, Phase.FORWARD, Phase.BACKWARD)
        return [self.candidate(prior=expected(part, 1.03))]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what looks, compares and leaves out."""
        return BiasSkip(at_once=True)

    def knob(self, params: Mapping[str, Any]) -> Knob:
        """Return what looks and compares, and leaves out while it is on."""
        return BiasSkip(at_once=False)

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Give the convolutions `bias=False`; saved parameters change, so only with `--unsafe`."""
        from hotloop.optimize.catalogue.compute.conv_bias_off.rewrite import drop_biases

        return drop_biases(source)
