"""frozen_inference: a model that is not trained, without what only training needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.model.program import ModuleFacts
from hotloop.optimize.catalogue.compute.frozen_inference.activation import FrozenModel
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.parameters import boolean, only
from hotloop.optimize.program.bounds import expected, share
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

LAYERS = ("Conv1d", "Conv2d", "Conv3d", "Linear")
NORMS = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d")


class FrozenInference(Optimization):
    """Take out of a model that is not trained what only training needs.

    What it does: forwards run under `torch.inference_mode()`; with `fold`, each batch norm that directly follows a
    convolution or a linear layer is folded into its weights. Which ones do is seen in the first forward; every module
    that holds some is run both ways on what it was given in the second, and is left alone where the outputs differ by
    more than rounding. In training mode the program's own layers come back at once.

    Why it is faster: a folded norm costs nothing, and its pass over the feature map goes. Under inference mode a tensor
    has no version counter and keeps no record of views, which saves a few microseconds an operation.

    When it does not help: models without batch norms, or with other layers between; the compiler folds them too.
    Refused where the program trains or saves its model (the saved weights would be the folded ones); norms of a model
    in training mode are not folded.

    Effect on numerics: the folded weights are rounded once more; outputs move by some units in the last place.

    Example: `model = torch.fx.experimental.optimization.fuse(model.eval())` and `with torch.inference_mode():`

    References: PyTorch tutorial, "Building a Convolution/Batch Norm fuser with torch.compile"; torch.inference_mode.
    """

    name: ClassVar[str] = "frozen_inference"
    family: ClassVar[str] = "compute"
    numerics: ClassVar[Numerics] = Numerics.TOLERANCE
    interacts: ClassVar[frozenset[str]] = frozenset({"compile", "channels_last"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return it with the norms folded, where there are some, and without."""
        _require_inference(observation)
        roots = observation.program.roots
        wanted: list[tuple[dict[str, Any], float]] = []
        if any(_has_norms(root) for root in roots):
            wanted.append(
                ({"fold": True}, 1.08)
            )  # a norm and a ReLU pass over as much memory as a small convolution
        if any(root.grad_mode != "inference" for root in roots):
            wanted.append(({}, 1.02))
        if not wanted:
            why = "its norms take the statistics of each batch (training mode)"
            norms = why if any(root.training for root in roots) else "the model has no batch norm to fold"
            raise DoesNotApply(f"{norms}, and it runs under inference_mode already")
        part = share(observation, Phase.FORWARD)
        return [self.candidate(params, prior=expected(part, factor)) for params, factor in wanted]

    def validate(self, params: Mapping[str, Any]) -> None:
        """Check the parameter."""
        only(params, "fold")
        boolean(params, "fold")

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what freezes."""
        return FrozenModel(fold=params.get("fold", False), at_once=True)

    def knob(self, params: Mapping[str, Any]) -> Knob:
        """Return what freezes while it is on."""
        return FrozenModel(fold=params.get("fold", False), at_once=False)

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Write inference_mode for no_grad around the calls, and fold the norms before the loop that makes them."""
        from hotloop.optimize.catalogue.compute.frozen_inference.rewrite import freeze

        return freeze(source, sites, fold=params.get("fold", False))


def _require_inference(observation: Observation) -> None:
    program = observation.program
    if observation.anchor is None or not observation.anchor.infers:
        raise DoesNotApply("the program trains")
    if not program.roots:
        raise DoesNotApply("no module is called as a whole, so there is nothing to freeze")
    if any(root.compiled for root in program.roots):
        raise DoesNotApply("the program compiles its model, and the compiler freezes it")
    if observation.run.num_checkpoints:
        raise DoesNotApply("the program saves its model: folded weights would be saved")


def _has_norms(root: ModuleFacts) -> bool:
    layers = root.layer_counts
    return (
        not root.training and any(name in layers for name in LAYERS) and any(name in layers for name in NORMS)
    )
