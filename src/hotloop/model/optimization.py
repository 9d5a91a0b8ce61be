"""What an optimization says of itself, and what a candidate is."""

from enum import Enum
from typing import Any

import msgspec

from hotloop.model.ratio import Ratio


class Numerics(str, Enum):
    """What an optimization does to the numbers; decides whether it may be on without asking."""

    EXACT = "exact"
    """The same numbers, or differences only in the order of floating-point sums."""
    TOLERANCE = "tolerance"
    """Reduced precision: on only where the parity check passes."""
    SEMANTIC = "semantic"
    """A different optimization problem: never on unless the user allows it."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """An optimization with parameters, ready to be tried."""

    name: str
    params: dict[str, Any] = {}
    numerics: Numerics = Numerics.EXACT
    touches_numbers: bool = True
    """False: it changes where or when something is computed, not what (allocator, wait policy, prefetch).

    Other kernels for the same (autotuning, graphs) do touch them: sums are in another order, and how far that may carry
    a training is told by runs with rounding noise.
    """
    max_gain: float | None = None
    """Amdahl's bound: the largest speed ratio that the observation allows; None: no bound is known."""
    prior: float = 1.0
    """Expected speed ratio where nothing better is known; orders the trials, is never quoted."""
    predicted: Ratio | None = None
    """The gain expected from measuring parts of this program; None: no prediction. Never quoted as a gain."""
    one_off_s: float | None = None
    """Seconds that its first steps are expected to take more (compilation); None: nothing worth naming."""
    saves_memory: bool = False
    """It is tried where memory is the goal, or a limit has to be met."""
    saved_bytes: int | None = None
    """Expected of the peak; None: not known before it is measured."""
    samples: float = 1.0
    """Samples of one of its steps over those of the program's own step; its times are for as many samples as that."""
    caution: str = ""
    """What a plan with it leaves to the user, as a sentence; empty: nothing."""

    @property
    def expected(self) -> float:
        """The speed ratio that is expected of it before it was tried."""
        return self.predicted.ratio if self.predicted else self.prior

    @property
    def label(self) -> str:
        """Name and parameters as one readable word: `loader_workers(num_workers=2)`."""
        inside = ", ".join(f"{key}={value}" for key, value in sorted(self.params.items()))
        return f"{self.name}({inside})" if inside else self.name


NOT_ASKED = "not asked for (--only)"
"""The reason of a refusal that is the user's own."""


class Refusal(msgspec.Struct, frozen=True):
    """An optimization that was not taken, and why."""

    name: str
    reason: str
    tried: bool = False
    """Something was measured of it; False: it was not, or the result is of an earlier version."""


class Effect(msgspec.Struct, frozen=True):
    """Whether an activated optimization was seen to act."""

    name: str
    on: bool
    evidence: str
