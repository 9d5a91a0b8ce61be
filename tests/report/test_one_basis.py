"""observe, diagnose and report say the same time of the same phase: the mean step's, which shares are of."""

from __future__ import annotations

import msgspec
import pytest

from hotloop.diagnose.check.engine import diagnose
from hotloop.model.deep import Deep
from hotloop.model.observation import RankObservation
from hotloop.model.operators import Flops, Product
from hotloop.model.quantities import duration
from hotloop.observe.profile.efficiency import with_efficiency
from hotloop.report.document import Chart, Table
from hotloop.report.sections.step import step
from hotloop.report.terminal.findings import render as render_diagnosis
from hotloop.report.terminal.observation import render as render_observation

from .results import shown
from .rich_session import content
from .test_observation_screen import PHASES, STEP, observation

DATA = "66.4 ms"
"""Half of a mean step of 132.7 ms; of the median step it would be 61.7 ms."""


def test_the_wait_for_data_is_the_same_everywhere() -> None:
    assert f"data        {DATA}  50.0%" in shown(render_observation(observation()))
    found = diagnose(observation())
    costs = {finding.code: finding.cost_s for finding in found.findings}
    assert duration(costs["input-bound"] or 0.0) == DATA
    assert "step  133 ms, the mean of 212 steps" in shown(render_diagnosis(found))
    section = step(msgspec.structs.replace(content(tuned=False), observation=observation()))
    assert section is not None
    chart = section.blocks[0]
    assert isinstance(chart, Chart)
    assert chart.table is not None
    assert ("data", DATA, "50.0%") in chart.table.rows


def test_ranks_show_the_step_that_their_shares_are_of() -> None:
    ranks = tuple(
        RankObservation(rank=rank, pid=rank, role="train", step=STEP, phases=PHASES) for rank in (0, 1)
    )
    section = step(
        msgspec.structs.replace(
            content(tuned=False), observation=msgspec.structs.replace(observation(), ranks=ranks)
        )
    )
    assert section is not None
    (table,) = [one for one in section.blocks if isinstance(one, Table) and one.header[0] == "rank"]
    assert table.header[1] == "mean step"
    assert [row[1:3] for row in table.rows] == [("133 ms", "50.0%")] * 2


def test_the_rate_of_arithmetic_is_that_of_the_mean_step() -> None:
    product = Product(name="mm", shapes=(), dtype="float32", count=1.0, flop=1e9)
    seen = msgspec.structs.replace(observation(), deep=Deep(flops=Flops(flop=1e9, products=(product,))))
    ranks = (RankObservation(rank=0, pid=1, role="train", step=STEP, phases=PHASES),)
    found = with_efficiency(msgspec.structs.replace(seen, ranks=ranks), None).efficiency
    assert found is not None
    assert found.flop_per_s == pytest.approx(1e9 / 0.1327)
