"""The page of predicted against measured gains."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median

import msgspec

from hotloop.model.ratio import Ratio

TARGET = 0.10
OUTLIER = 0.25
"""Of the measured ratio: so far off an order of trials is decided by the error."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One candidate of one program."""

    case: str
    label: str
    predicted: Ratio | None = None
    """None: no prediction."""
    measured: Ratio | None = None
    """None: the trial gave nothing (`why`)."""
    method: str = ""
    predict_s: float = 0.0
    """For all candidates of the program together."""
    trial_s: float = 0.0
    """For this one, in a set that shares the original's arm: dearer alone."""
    noisy: int = 0
    why: str = ""

    @property
    def error(self) -> float | None:
        """How far the prediction is from the measurement, as a share of it."""
        if self.predicted is None or self.measured is None:
            return None
        return math.expm1(abs(math.log(self.predicted.ratio / self.measured.ratio)))


def lines(rows: Sequence[Row], num_cases: int) -> list[str]:
    """Return the page below its head."""
    told = [row for row in rows if row.error is not None]
    cases = {row.case for row in rows}
    result = [
        f"{len(cases)} of {num_cases} programs of the fault library, {len(rows)} candidates: {len(told)} with both a "
        f"prediction and a measurement.",
        "",
    ]
    if not told:
        return result
    errors = [row.error or 0.0 for row in told]
    inside = sum(_holds(row) for row in told)
    result += [
        f"- median absolute error: {median(errors):.1%} (target {TARGET:.0%}); within {TARGET:.0%}: "
        f"{sum(error <= TARGET for error in errors)} of {len(told)}",
        f"- predicted intervals that hold the measured ratio: {inside} of {len(told)}",
        f"- the right side of 1 where the measured interval leaves 1 out: {_right_side(told)}",
        f"- all predictions of a program took {median([row.predict_s for row in told]):.0f} s (median), a trial "
        f"{median([row.trial_s for row in told]):.0f} s each beside a shared original",
        "",
        "The measurement is one pair of processes, and identical pairs differ by about 2% (one standard deviation).",
        "",
        "| optimization | trials | median error | largest |",
        "|---|---|---|---|",
        *_by_name(told),
        "",
        f"## Outliers (error above {OUTLIER:.0%})",
        "",
        "| program | candidate | predicted | measured | error |",
        "|---|---|---|---|---|",
        *_table(
            sorted((row for row in told if (row.error or 0) > OUTLIER), key=lambda row: -(row.error or 0))
        ),
        "",
        "## All",
        "",
        "| program | candidate | predicted | measured | error |",
        "|---|---|---|---|---|",
        *_table(told),
        "",
        "## Without a prediction or a measurement",
        "",
        *(f"- {row.case}, {row.label}: {row.why or 'no prediction'}" for row in rows if row.error is None),
    ]
    return result


def _holds(row: Row) -> bool:
    assert row.predicted is not None
    assert row.measured is not None
    return row.predicted.low <= row.measured.ratio <= row.predicted.high


def _right_side(told: Sequence[Row]) -> str:
    clear = [row for row in told if row.measured and (row.measured.low > 1 or row.measured.high < 1)]
    right = sum(
        (row.predicted.ratio > 1) == (row.measured.ratio > 1)
        for row in clear
        if row.predicted and row.measured
    )
    return f"{right} of {len(clear)}"


def _by_name(told: Sequence[Row]) -> Iterator[str]:
    groups: dict[str, list[float]] = defaultdict(list)
    for row in told:
        groups[row.label.split("(")[0]].append(row.error or 0.0)
    for name, errors in sorted(groups.items()):
        yield f"| {name} | {len(errors)} | {median(errors):.1%} | {max(errors):.1%} |"


def _table(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        yield f"| {row.case} | {row.label} | {_shown(row.predicted)} | {_shown(row.measured)} | {row.error or 0:.0%} |"


def _shown(ratio: Ratio | None) -> str:
    return "-" if ratio is None else f"{ratio.ratio:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"
