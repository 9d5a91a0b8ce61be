"""What the step would be if one part of it came for nothing."""

from typing import Any

import msgspec

from hotloop.model.ratio import Ratio


class Ceilings(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a program's step, each measured with the other part taken away. None: not measured."""

    compute_samples_per_s: float | None = None
    """Of the loop on one cached batch: a perfect input pipeline."""
    compute_low: float | None = None
    """Ends of its 95% interval."""
    compute_high: float | None = None
    perfect_input: Ratio | None = None
    """How much faster the step is on one cached batch."""
    perfect_input_step_s: float | None = None
    loader_samples_per_s: dict[int, float] = {}
    """Of the training loader with no training, by number of workers."""
    num_workers: int | None = None
    """The program's own."""
    perfect_device_step_s: float | None = None
    """The step if it did nothing but wait for its loader as it is."""
    transfer_s: float | None = None
    """The copy of one batch to the device; None where there is no device, too."""

    @property
    def loader_now(self) -> float | None:
        """The loader's rate with the workers that the program gives it."""
        return None if self.num_workers is None else self.loader_samples_per_s.get(self.num_workers)


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """The gain expected of one candidate, before any trial."""

    name: str
    params: dict[str, Any] = {}
    ratio: Ratio
    """Of the whole step."""
    method: str
    """How it was come by."""
    one_off_s: float | None = None
    """What its first steps cost more (compilation); None: nothing worth naming."""
