"""The content of a report: every figure that any rendering shows."""

from __future__ import annotations

import msgspec

from hotloop.model.deep import Deep
from hotloop.model.diagnosis import Bottleneck
from hotloop.model.finding import Finding
from hotloop.model.machine import MachineCard
from hotloop.model.observation import Coverage, Observation
from hotloop.model.origin import Origin
from hotloop.model.ratio import Ratio
from hotloop.model.tuning import TuneResult

SCHEMA = 1


class SetSamples(msgspec.Struct, frozen=True, kw_only=True):
    """One set of the confirmation, raw: the original first, the plan last."""

    rounds: tuple[tuple[float, ...], ...]
    """Seconds a step of every arm, round by round."""
    phases: tuple[dict[str, float], ...]
    """Of every arm: the parts of its median step."""
    peak_bytes: tuple[int | None, ...]


class HeldSteps(msgspec.Struct, frozen=True):
    """Steps of a process from one switch of its knobs to the next."""

    on: tuple[str, ...]
    """Labels of what was on."""
    steps_s: tuple[float, ...]


class LossCurves(msgspec.Struct, frozen=True, kw_only=True):
    """Losses from one seed on the same batches, of runs that end when their sets do."""

    original: tuple[float, ...]
    repeats: tuple[tuple[float, ...], ...] = ()
    """The original again, in other processes."""
    perturbed: tuple[float, ...] = ()
    """The original with rounding noise on its parameters; empty: not run."""
    plan: tuple[tuple[float, ...], ...] = ()
    """Of every set of the confirmation."""


class Excerpt(msgspec.Struct, frozen=True):
    """Lines of the program's source around the one that is meant."""

    path: str
    line: int
    first: int
    """Number of the first line shown."""
    text: str


class Savings(msgspec.Struct, frozen=True, kw_only=True):
    """What the plan saves of the training loop. Evaluation, checkpoints and start-up are not in it."""

    num_steps: int
    per_epoch: bool
    """Whether that many steps are an epoch; otherwise none was seen whole."""
    before_s: float
    after_s: float
    saved_s: float
    low_s: float
    """Ends of the 95% interval, from the speed-up's; the baseline's step time is taken as measured."""
    high_s: float
    money: float | None = None
    """Saved, in the currency of the price; None: no price was given."""
    energy_kwh: float | None = None
    """Saved at the mean power of the observation; None: power was not measured."""


class Headline(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict."""

    sentence: str
    speedup: Ratio | None
    """Confirmed in fresh processes; None: nothing is claimed."""
    step_before_s: float | None
    step_after_s: float | None
    """The baseline's step time over the confirmed speed-up."""
    learns_the_same: bool | None
    """None: not compared."""


class ReportContent(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a report of one session shows."""

    session: str
    headline: Headline
    savings: Savings | None
    """None: nothing was confirmed."""
    origin: Origin | None
    """None: of an earlier version."""
    observation: Observation | None
    tuning: TuneResult | None
    """None: the session only observed."""
    bottleneck: Bottleneck | None
    findings: tuple[Finding, ...]
    excerpts: tuple[Excerpt, ...] = ()
    """Of the lines of findings."""
    manual: dict[str, str] = {}
    """Manual pages of the findings and optimizations that are named, as Markdown."""
    sets: tuple[SetSamples, ...] = ()
    held: dict[str, tuple[HeldSteps, ...]] = {}
    """Of each process whose knobs were switched, in order, by what the keys of its trials begin with."""
    losses: LossCurves | None = None
    after: Deep | None = None
    """What detailed profiling saw with the plan on; of the program as it was it stands in the observation."""
    card: MachineCard | None = None
    """What this machine can do; None: not measured."""
    patch: str | None = None
    """The plan as a diff of the program's source; None: it could not be worked out, see `why_no_patch`."""
    why_no_patch: str | None = None
    missing: tuple[Coverage, ...] = ()
    """What was not measured."""
    schema: int = SCHEMA

    def without_series(self) -> ReportContent:
        """Return it without the raw steps, as JSON shows it."""
        seen = self.observation
        return msgspec.structs.replace(
            self,
            observation=seen.without_series() if seen else None,
            after=self.after.without_series() if self.after else None,
        )
