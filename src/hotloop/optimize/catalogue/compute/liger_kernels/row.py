"""liger_kernels: layers of a transformers model by the kernels of Liger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.compute.liger_kernels.activation import LigerLayers
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.parameters import boolean, only, required
from hotloop.optimize.program.bounds import expected, share
from hotloop.optimize.program.second_derivatives import who_differentiates_twice
from hotloop.probe.activation.activation import Activation

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

USUAL = {True: 1.2, False: 1.1}
"""Of forward and backward: with the loss, and of the layers alone."""
_MODELS = "/transformers/models/"


class LigerKernels(Optimization):
    """Compute normalizations, rotary embeddings and SwiGLU of a transformers model by Liger's kernels.

    What it does: before the first training forward, Liger exchanges what it has a kernel for in the model that was
    made: RMS and layer norm, rotary embedding, the gated feed-forward. With `fused_loss` the last layer and the
    cross-entropy are one kernel, too, which never holds the logits of a whole batch.

    Why it is faster: each of these is a chain of small kernels that read and write whole activations; Liger has one
    kernel for each, and keeps less for the backward pass. Logits of a large vocabulary are often the largest tensor of
    a step.

    When it does not help: models that Liger does not know; a model that torch.compile has fused already; small models.
    It needs a GPU and `liger-kernel` installed beside the program. With `fused_loss` the model returns no logits while
    it trains: a program that reads them fails, and the trial says so.

    Effect on numerics: rounding, and with `fused_loss` the order in which the loss is summed up.

    Example: `TrainingArguments(use_liger_kernel=True)`

    References: Hsu et al. 2024, Liger Kernel: efficient Triton kernels for LLM training.
    """

    name: ClassVar[str] = "liger_kernels"
    family: ClassVar[str] = "compute"
    numerics: ClassVar[Numerics] = Numerics.TOLERANCE
    conflicts: ClassVar[frozenset[str]] = frozenset({"fused_layers"})
    interacts: ClassVar[frozenset[str]] = frozenset({"autocast_bf16", "autocast_fp16", "compile"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return it with the loss and without, where device, library and model allow it."""
        program = observation.program
        if program.device != "cuda":
            raise DoesNotApply("the model is on the CPU, for which Liger has no kernels")
        if not any(_MODELS in path.replace("\\", "/") for root in program.roots for path in root.code_files):
            raise DoesNotApply("no layer of the model is one of transformers")
        if "liger_kernel" not in program.libraries:
            raise DoesNotApply("liger-kernel is not installed beside the program: pip install liger-kernel")
        if who := who_differentiates_twice(observation):
            raise DoesNotApply(f"{who} differentiates a gradient, which Liger's kernels cannot")
        part = share(observation, Phase.FORWARD, Phase.BACKWARD)
        return [
            self.candidate(params={"fused_loss": fused}, prior=expected(part, USUAL[fused]))
            for fused in (True, False)
        ]

    def validate(self, params: Mapping[str, Any]) -> None:
        """Check that it is said whether the loss is meant, too."""
        only(params, "fused_loss")
        required(params, "fused_loss")
        boolean(params, "fused_loss")

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what has Liger exchange the layers."""
        return LigerLayers(params["fused_loss"])

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Show what to write: Liger has a function of its own for each kind of model."""
        from hotloop.source.outcome import Refused

        return Refused(
            "Liger has a function of its own for each kind of model",
            "with the Trainer: TrainingArguments(..., use_liger_kernel=True); else behind the line that makes the "
            "model:\n"
            "liger_kernel.transformers.apply_liger_kernel_to_llama(\n"
            f"    model=model, cross_entropy=False, fused_linear_cross_entropy={params['fused_loss']}\n"
            ")",
        )
