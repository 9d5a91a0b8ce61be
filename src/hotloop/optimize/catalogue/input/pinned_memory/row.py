"""pinned_memory: batches in page-locked memory, copied to the device without waiting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.input.pinned_memory.activation import PinnedCopies
from hotloop.optimize.loaders.training_loaders import training_loaders
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.program.bounds import bound, expected, share
from hotloop.probe.activation.activation import Activation

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite


class PinnedMemory(Optimization):
    """Put batches into page-locked memory and copy them to the device without waiting.

    What it does: `pin_memory=True` for every loader, and `non_blocking=True` for copies of their batches
    to the device (`tensor.to(device)`, `tensor.cuda()`). Copies from the device to the host are not touched: they
    would be read before they are there; nor are page-locked buffers of the program's own, which it may fill again.

    Why it is faster: the device's copy engine reads page-locked memory directly, at about twice the rate, and
    the program goes on issuing work while it does.

    When it does not help: on the CPU there is nothing to copy; small batches; programs that write into a
    batch in place right after copying it would change what is copied (the parity check sees that).

    Effect on numerics: none.

    Example: `DataLoader(..., pin_memory=True)` and `batch.to("cuda", non_blocking=True)`

    References: PyTorch performance tuning guide; "A guide on good usage of non_blocking and pin_memory()"
    (PyTorch tutorials).
    """

    name: ClassVar[str] = "pinned_memory"
    family: ClassVar[str] = "input"
    numerics: ClassVar[Numerics] = Numerics.EXACT
    touches_numbers: ClassVar[bool] = False

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate, where there is a device to copy to."""
        if observation.program.device == "cpu":
            raise DoesNotApply("the model is on the CPU: there is no device to copy batches to")
        training_loaders(observation)
        # Page-locked copies run at about twice the rate of pageable ones.
        prior = expected(share(observation, Phase.TRANSFER), 2.0)
        limit = bound(observation, Phase.DATA, Phase.TRANSFER)
        return [self.candidate(max_gain=limit, prior=prior)]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what pins and copies."""
        return PinnedCopies()

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Set the keyword of the training loaders, and let the copies of their batches not be waited for."""
        from hotloop.optimize.catalogue.input.pinned_memory.rewrite import rewrite_copies

        return rewrite_copies(source, sites)
