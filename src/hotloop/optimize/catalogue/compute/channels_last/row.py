"""channels_last and channels_last_3d: convolutions on tensors whose channels are innermost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.model.program import ModuleFacts
from hotloop.optimize.catalogue.compute.channels_last.activation import MemoryFormat
from hotloop.optimize.catalogue.compute.channels_last.knob import MemoryFormatKnob
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.program.bounds import expected, share
from hotloop.optimize.program.source_calls import model_texts
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite


class ChannelsLast(Optimization):
    """Run two-dimensional convolutions on channels-last tensors.

    What it does: the weights of the convolutions and the four-dimensional inputs of the model are laid out
    with the channels innermost (`torch.channels_last`); between the layers the layout goes on by itself. What
    the model returns is contiguous again, because programs call `view` on it.

    Why it is faster: convolution kernels of cuDNN (tensor cores) and oneDNN work on this layout; without it
    they convert, or take slower kernels.

    When it does not help: layers without a channels-last kernel convert to and fro; single-channel images;
    models whose `forward` calls `view` on a feature map (that raises: use `flatten` or `reshape`). Parameters
    in shared memory are left alone: a new layout would silently un-share them.

    Effect on numerics: the order of sums. Dropout on a feature map draws its mask in the order of memory: other
    elements are dropped, as many of them. A model with dropout is held to the curve of the loss, not to its first
    steps.

    Example: `model.to(memory_format=torch.channels_last); images =
    images.to(memory_format=torch.channels_last)`

    References: "Channels Last Memory Format in PyTorch" (tutorial); PyTorch performance tuning guide.
    """

    name: ClassVar[str] = "channels_last"
    family: ClassVar[str] = "compute"
    numerics: ClassVar[Numerics] = Numerics.EXACT
    interacts: ClassVar[frozenset[str]] = frozenset({"autocast_bf16", "autocast_fp16"})
    dimensions: ClassVar[int] = 2

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate, for models with convolutions of this many dimensions."""
        program = observation.program
        layers = {name for root in program.roots for name in root.layer_counts}
        if not layers & {f"Conv{self.dimensions}d", f"ConvTranspose{self.dimensions}d"}:
            raise DoesNotApply(f"the model has no Conv{self.dimensions}d")
        if program.shared_memory:
            raise DoesNotApply("the parameters are shared between processes: a new layout un-shares them")
        if program.distributed == "fsdp":
            raise DoesNotApply("FSDP keeps flat parameters, which have no layout")
        # Published scripts gave 0.9-1.3 by hand; 1.1 on forward and backward is the middle of it.
        prior = expected(share(observation, Phase.FORWARD, Phase.BACKWARD), 1.1)
        numerics = Numerics.TOLERANCE if _drops(program.roots) else self.numerics
        return [self.candidate(numerics=numerics, prior=prior)]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what changes the layout."""
        return MemoryFormat(self.dimensions)

    def knob(self, params: Mapping[str, Any]) -> Knob:
        """Return what changes the layout to and fro."""
        return MemoryFormatKnob(self.dimensions)

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Lay out the model behind its construction, and its inputs where it is called."""
        from hotloop.optimize.catalogue.compute.channels_last.rewrite import rewrite_memory_format

        return rewrite_memory_format(source, sites, self.dimensions)


class ChannelsLast3d(ChannelsLast):
    """Run three-dimensional convolutions on channels-last tensors.

    What it does: as channels_last, for volumes: the weights of three-dimensional convolutions and the
    five-dimensional inputs get `torch.channels_last_3d`.

    Why it is faster: as for channels_last.

    When it does not help: as for channels_last; kernels for volumes are fewer, and older MIOpen has none.

    Effect on numerics: as for channels_last.

    Example: `model.to(memory_format=torch.channels_last_3d)`

    References: "Channels Last Memory Format in PyTorch" (tutorial).
    """

    name: ClassVar[str] = "channels_last_3d"
    dimensions: ClassVar[int] = 3


def _drops(roots: Sequence[ModuleFacts]) -> bool:
    """Whether a model draws what it drops, in layers or by a function."""
    layers = any("Drop" in name for root in roots for name in root.layer_counts)
    return layers or any("dropout(" in text for text in model_texts(*roots))
