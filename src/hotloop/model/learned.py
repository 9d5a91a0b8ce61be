"""What a run is judged by, where the question is whether it learns (or answers) the same."""

import msgspec


class GradientSketch(msgspec.Struct, frozen=True, kw_only=True):
    """The gradients that an optimizer step used, in a few sums with fixed random signs."""

    num_forwards: int
    """Training calls of root modules before it."""
    generators: int
    """A fingerprint of the random generators: the same where the same random numbers were drawn."""
    num_values: int
    """That the sums are of."""
    sums: bytes
    """32-bit floats, little-endian; the cosine of two sketches is that of the gradients, within an eighth."""


class TrainingInvariants(msgspec.Struct, frozen=True, kw_only=True):
    """What a training does whatever its speed: a change that is only faster leaves it as it was.

    Of the first steps of a run. Numbers of 0 and shares of None were not seen.
    """

    num_forwards: int = 0
    """Training calls of root modules that were looked at."""
    batches: tuple[float, ...] = ()
    """A fingerprint of what each was given; where a model is given no tensors there is none."""
    integers: tuple[float, ...] = ()
    """A fingerprint of the integers (tokens, labels, ids) among what each was given; 0: it was given none."""
    num_random: int = 0
    """How many of them drew random numbers: dropout, and what else is random in a model."""
    num_buffers: int = 0
    """Floating-point buffers of the roots: running statistics are some of them."""
    num_moving: int = 0
    """Buffers that changed from forward to forward."""
    coarse_weights: float | None = None
    """Share of the weights that half precision (bfloat16 or float16) holds without rounding; 0 to 1."""
    num_parameters: int = 0
    """Tensors that optimizers have taken more than one step on."""
    num_still: int = 0
    """Those of them that did not move."""
    num_begun: int = 0
    """Optimizer steps after which a backward began."""
    num_carried: int = 0
    """Of these, how often the gradients that the step had used were still there, to be added to."""
    update_size: float | None = None
    """Length of a step's update of the weights, relative to that of the weights; mean of the steps."""
    update_turn: float | None = None
    """Cosine between a step's update and the one before; mean of the steps."""
    zero_gradients: float | None = None
    """Share of the gradients' elements that are 0, or that are missing; 0 to 1."""
    gradients: tuple[GradientSketch, ...] = ()
    """Of the first steps, in order; empty: none was taken."""

    @property
    def distinct(self) -> float | None:
        """Share of the batches that are different ones; None: no batch was seen."""
        return len(set(self.batches)) / len(self.batches) if self.batches else None


class Learned(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is judged by."""

    losses: tuple[float, ...] = ()
    """In the order of the backward calls."""
    outputs: bytes = b""
    """Sketches of what its forwards gave (`probe.record.sketch_rows`), where nothing is trained; empty: it trains."""
    invariants: TrainingInvariants | None = None
    """None: not seen."""
