"""What holds a program back: one bottleneck, and the findings with their price."""

import msgspec

from hotloop.model.finding import Finding
from hotloop.model.observation import Observation


class Bottleneck(msgspec.Struct, frozen=True):
    """What most of the time goes to."""

    kind: str
    """`input`, `transfer`, `compute`, `communication`, `optimizer`, `host`, or the name of a part of the run."""
    share: float
    """Of the step, or of the loop where it is a part of the run; 0 to 1."""
    sentence: str


class Abstention(msgspec.Struct, frozen=True):
    """A rule that could not judge, and the data it would need."""

    code: str
    needs: str


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """One observation, read by all dynamic rules."""

    bottleneck: Bottleneck | None
    """None: no step was measured."""
    findings: tuple[Finding, ...]
    """The most expensive first; all that are louder than `info` before those that are not."""
    abstained: tuple[Abstention, ...]
    observation: Observation
    session: str | None = None
    schema: int = 1
