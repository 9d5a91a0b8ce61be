"""device_augmentation: random transforms run on whole batches, where the model is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.input.device_augmentation.activation import AugmentedBatches
from hotloop.optimize.catalogue.input.device_augmentation.batch_transforms import NAMES, is_installed
from hotloop.optimize.loaders.training_loaders import training_loaders
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.program.bounds import expected, require_share, share
from hotloop.probe.activation.activation import Activation

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

LEAST = 0.05
"""Of a sample's time, in transforms that have a counterpart for batches."""
CODE = """\
import kornia.augmentation as K

augment = torch.nn.Sequential(K.RandomHorizontalFlip(), K.Normalize(mean, std)).to(device)
images = augment(images.to(device))  # in the loop; and out of the data set's transforms
"""


class DeviceAugmentation(Optimization):
    """Run random transforms on a batch, on the model's device, instead of on one image at a time.

    What it does: the last transforms of a shuffled loader's chain, as far as they are torchvision's and Kornia has a
    counterpart (flips, crop, rotation, erasing, gray, blur, normalization), are taken off the chain, and
    Kornia's run on every training batch, where the model is. Every image has random numbers of its own, as before.

    Why it is faster: one kernel for a batch in place of Python and a small operation for each image; on a GPU the
    host's cores are free for reading and decoding.

    When it does not help: decoding takes the time; a GPU that is the bottleneck already. Left alone are transforms
    before the image is a tensor, transforms of other packages, data sets whose chain an evaluation uses, too, and
    loaders with a collate function of their own. Kornia has to be installed: `pip install kornia`.

    Effect on numerics: other random numbers are drawn, and borders and interpolation may differ: it is tried only
    where you allow another optimization problem (`--allow semantic`).

    Example: `images = K.RandomHorizontalFlip()(images.to(device))` in the loop

    References: Riba et al. 2020, Kornia; torchvision transforms v2.
    """

    name: ClassVar[str] = "device_augmentation"
    family: ClassVar[str] = "input"
    numerics: ClassVar[Numerics] = Numerics.SEMANTIC
    conflicts: ClassVar[frozenset[str]] = frozenset({"dataset_in_memory", "cached_preprocessing"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate, where transforms with a counterpart take some of the wait."""
        training_loaders(observation)
        require_share(observation, Phase.DATA, "waiting for data")
        seen = observation.deep.loading if observation.deep else None
        if seen is None:
            raise DoesNotApply("what a sample's time goes to was not looked at")
        part = sum(each.share for each in seen.parts if each.kind == "transform" and each.name in NAMES)
        if part < LEAST:
            raise DoesNotApply(f"transforms that could run on batches take {part:.1%} of a sample's time")
        if not is_installed():
            raise DoesNotApply(f"transforms take {part:.0%} of a sample's time, and Kornia is not installed")
        whole = share(observation, Phase.DATA)
        return [self.candidate(prior=expected(whole * part if whole is not None else None, 4.0))]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what transforms batches."""
        return AugmentedBatches()

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Return the code to paste: it draws different random numbers, so the user applies it."""
        from hotloop.source.outcome import Refused

        return Refused("it draws different random numbers; apply it yourself", CODE)
