"""Curves of losses end where their runs did; none is cut for another's sake."""

from __future__ import annotations

from typing import Any

import msgspec

from hotloop.report.content.content import LossCurves
from hotloop.report.document import Chart
from hotloop.report.sections.parity import WINDOW, parity

from .rich_session import content


def _charts(curves: LossCurves) -> list[Chart]:
    section = parity(msgspec.structs.replace(content(), losses=curves))
    assert section is not None
    return [block for block in section.blocks if isinstance(block, Chart)]


def _drawn(data: dict[str, Any]) -> dict[str, int]:
    """How many points each curve and the band have."""
    told = {line["name"]: line["y"] for line in data["lines"]} | {"band": data["high"]}
    return {name: sum(value is not None for value in values) for name, values in told.items()}


def test_each_run_is_drawn_and_told_to_its_own_end() -> None:
    curve = tuple(2.0 - 0.01 * at for at in range(47))
    told = LossCurves(
        original=curve, repeats=(curve[:30], curve[:4]), perturbed=curve[:22], plan=(curve[:40],)
    )
    losses, departures = _charts(told)
    assert _drawn(losses.data) == {"original": 47, "original again": 30, "with the plan": 40, "band": 47}
    assert losses.table is not None
    assert losses.table.rows[2] == ("with the plan", "40", "2", "1.61")
    assert "30 to 47 steps, each run its own" in losses.summary
    less = WINDOW - 1
    assert _drawn(departures.data) == {
        "original again": 30 - less,
        "with the plan": 40 - less,
        "band": 40 - less,
    }


def test_runs_of_one_length_are_told_as_that() -> None:
    curve = tuple(2.0 - 0.01 * at for at in range(20))
    losses, _ = _charts(LossCurves(original=curve, repeats=(curve,), plan=(curve,)))
    assert losses.summary.startswith("20 steps from one seed. The band is what 2 runs of the original span.")
