"""observe, diagnose and report say the same time of the same phase: the mean step's, which shares are of."""

from __future__ import annotations

import msgspec
import pytest

from hotloop.diagnose.check.engine import diagnose
from hotloop.model.deep import Deep
from hotloop.model.machine import DeviceRates, MachineCard
from hotloop.model.observation import RankObservation
from hotloop.model.operators import Efficiency, Flops, Operator, Operators, Product
from hotloop.model.quantities import duration, percent
from hotloop.observe.profile.efficiency import with_efficiency
from hotloop.report.charts.roofline import roofline
from hotloop.report.document import Chart, Details, Facts, Table
from hotloop.report.sections.method import method
from hotloop.report.sections.step import phases_of, step
from hotloop.report.sections.trials import trials
from hotloop.report.sections.tuned import smallest_difference
from hotloop.report.terminal.findings import render as render_diagnosis
from hotloop.report.terminal.observation import render as render_observation
from hotloop.report.terminal.tuning import render as render_tuning

from .results import shown
from .rich_session import RATE, card, content, tuning
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


def test_phases_of_a_tuned_page_add_up_to_the_steps_above_them() -> None:
    """A step of 83.1 ms stood above phases that added up to 90.2: one was a median, the others of the confirmation."""
    tuned = content()
    section = step(tuned)
    assert section is not None
    chart = section.blocks[0]
    assert isinstance(chart, Chart)
    assert chart.table is not None
    assert tuned.tuning is not None
    head = tuned.headline
    assert head.step_before_s == tuned.tuning.baseline.whole_s
    assert head.step_after_s is not None
    rows = dict(phases_of(tuned))
    assert sum(rows["as it was"].values()) == pytest.approx(head.step_before_s)
    assert sum(rows["with the plan"].values()) == pytest.approx(head.step_after_s)


def test_a_baseline_says_its_mean_first() -> None:
    assert tuning().baseline.mean_s is None, "of an earlier version"
    base = msgspec.structs.replace(tuning().baseline, mean_s=0.0902)
    said = " ".join(shown(render_tuning(msgspec.structs.replace(tuning(), baseline=base))).split())
    assert "90.2 ms mean step" in said


def test_an_operator_that_beats_the_roof_leaves_no_roof() -> None:
    """19 operators were "below 52 GFLOP/s", at 115, 127 and 121."""
    one = Operator(
        name="aten::mm",
        shapes=((8, 8),),
        count=1.0,
        self_s=0.01,
        device_s=None,
        share=1.0,
        flop=5e8,
        allocated_bytes=0,
    )
    deep = Deep(
        operators=Operators(operators=(one,), num=1.0, num_steps=2, window_s=1.0, self_s=0.01, device_s=0.0)
    )
    met = Efficiency(flop=5e8, flop_per_s=1e9, precision="fp32")
    seen = msgspec.structs.replace(observation(), deep=deep, efficiency=met)

    def known(flop_per_s: float, foreign_ratio: float = 0.0) -> MachineCard:
        peak = msgspec.structs.replace(RATE, median=flop_per_s, low=flop_per_s, high=flop_per_s)
        devices = (DeviceRates(device="cpu", name="EPYC", matmul_flop_per_s={"fp32": peak}),)
        return msgspec.structs.replace(card(), devices=devices, foreign_ratio=foreign_ratio)

    assert roofline(seen, known(1e11)) is not None
    assert roofline(seen, known(4e10)) is None
    assert roofline(seen, known(1e11, foreign_ratio=0.86)) is None


def test_sets_that_are_shown_and_sets_that_count_are_told_apart() -> None:
    tuned = content()
    assert tuned.tuning is not None
    fewer = msgspec.structs.replace(tuned.tuning, num_sets=len(tuned.sets) - 1)
    section = trials(msgspec.structs.replace(tuned, tuning=fewer))
    assert section is not None
    (proof,) = [one for one in section.blocks if isinstance(one, Details) and one.badge == "proof"]
    assert f"{len(tuned.sets)} sets of fresh processes, {len(tuned.sets) - 1} of which" in proof.title


def test_the_smallest_measurable_difference_is_one_figure() -> None:
    said = content(60)
    assert said.tuning is not None
    least = smallest_difference(said.tuning)
    assert least is not None
    figure = percent(least)
    assert f"smallest measurable difference {figure}" in " ".join(shown(render_tuning(said.tuning)).split())
    rows = dict(next(one.rows for one in method(said).blocks if isinstance(one, Facts)))
    assert rows["smallest measurable difference"].startswith(f"{figure};")
