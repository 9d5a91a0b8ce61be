"""pad_to_multiple: batches are padded to a multiple of 8, 16 or 64."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.input.pad_to_multiple.activation import PaddedBatches
from hotloop.optimize.loaders.training_loaders import training_loaders
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.parameters import integer, only, required
from hotloop.probe.activation.activation import Activation

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

CODE = """\
longest = -(-max(len(sample) for sample in samples) // 8) * 8  # in the collate function
inputs = torch.nn.functional.pad(inputs, (0, longest - inputs.shape[1]), value=pad_token)
"""


class PadToMultiple(Optimization):
    """Pad sequences to a length that is a multiple of 8, 16 or 64.

    What it does: every batch of a training loader whose integer tensors (tokens, labels, masks) are of one shape,
    samples by length, is padded with the value that pads it already, up to the next multiple. Vocabulary and channel
    sizes are the model's: `hotloop lint` names those that are no multiples of 8.

    Why it is faster: tensor cores work on tiles of 8, 16 or 64 numbers; a matrix of another size is computed by
    slower kernels, or padded by them again and again. Compiled code and CUDA graphs see fewer sizes.

    When it does not help: on a CPU; batches that are no sequences, or are all of one length; models that are slower for
    the padding than their kernels are faster. A batch without padding says nothing of the value to pad with: until
    one with padding has come, batches are left as they are.

    Effect on numerics: where the model masks its padding and the loss leaves it out, rounding; where it does not, as
    with a mean over all positions, the loss differs: it is tried only where you allow that
    (`--allow semantic`).

    Example: `tokenizer.pad(samples, pad_to_multiple_of=8)`

    References: PyTorch performance tuning guide; NVIDIA, Matrix multiplication background.
    """

    name: ClassVar[str] = "pad_to_multiple"
    family: ClassVar[str] = "input"
    numerics: ClassVar[Numerics] = Numerics.SEMANTIC

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return 8 and 64, on a device, where batches were seen to be padded."""
        training_loaders(observation)
        if observation.program.device == "cpu":
            raise DoesNotApply("the model is on the CPU, which has no tensor cores")
        seen = observation.deep.loading if observation.deep else None
        if seen is None or not seen.padding:
            raise DoesNotApply("no batch was seen to be padded")
        return [self.candidate(params={"multiple": multiple}, prior=1.02) for multiple in (8, 64)]

    def validate(self, params: Mapping[str, Any]) -> None:
        """Check the multiple."""
        only(params, "multiple")
        required(params, "multiple")
        integer(params, "multiple", 2, 1024)

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what pads."""
        return PaddedBatches(params["multiple"])

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Offer the code: only collate_fn knows the padding value."""
        from hotloop.source.outcome import Refused

        return Refused("only collate_fn knows the padding value", CODE)
