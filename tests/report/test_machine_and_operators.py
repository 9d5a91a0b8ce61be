"""Monitors, operators and efficiency on the screen, letter by letter."""

from __future__ import annotations

import msgspec

from hotloop.model.monitors import Monitor, Monitors
from hotloop.model.operators import Efficiency, Operator, Operators
from hotloop.report.document import Table
from hotloop.report.sections.memory import memory
from hotloop.report.sections.monitors import monitors
from hotloop.report.sections.operators import efficiency, operators
from hotloop.report.terminal.walk import render_blocks

from .results import shown
from .rich_session import content
from .snapshots import matches


def _metric(mean: float, largest: float | None = None) -> Monitor:
    largest = mean if largest is None else largest
    return Monitor(mean=mean, p95=largest, max=largest, samples=(mean, largest))


def test_monitors() -> None:
    seen = Monitors(
        interval_s=0.5,
        begin_s=4.0,
        end_s=12.0,
        times_s=(4.5, 5.0),
        metrics={
            "cpu_busy_ratio": _metric(0.75, 0.9),
            'cpu_utilization_ratio{core="0"}': _metric(0.95),
            'cpu_utilization_ratio{core="1"}': _metric(0.55),
            "cpu_iowait_ratio": _metric(0.1, 0.5),
            "memory_used_bytes": _metric(3 << 30, 4 << 30),
            "disk_read_bytes_per_s": _metric(50 << 20, 80 << 20),
            "disk_write_bytes_per_s": _metric(10.0),
            'gpu_utilization_ratio{gpu="0"}': _metric(0.4, 0.8),
            'gpu_power_w{gpu="0"}': _metric(300.0),
            'gpu_throttled_ratio{gpu="0"}': _metric(0.25),
            "cpu_foreign_ratio": _metric(0.02, 0.05),
        },
    )
    assert matches("observe_monitors", render_blocks(list(monitors(seen))))


def test_operators() -> None:
    one = Operator(
        name="aten::scaled_dot_product_flash_attention_for_cpu",
        shapes=((64, 8, 128, 64), (64, 8, 128, 64), (64, 8, 128, 64)),
        count=12.0,
        self_s=0.0345,
        device_s=None,
        share=0.345,
        allocated_bytes=1e6,
        flop=2.1e9,
    )
    seen = Operators(num_steps=3, window_s=0.4, num=1234.0, self_s=0.1, device_s=None, operators=(one,))
    assert matches("observe_operators", render_blocks([operators(seen)]))
    lines = shown(render_blocks([operators(seen)])).splitlines()
    assert all(len(line) <= 80 for line in lines)
    whole = operators(seen).rows[0]
    assert whole[0] == "scaled_dot_product_flash_attention_for_cpu"
    assert whole[-1].count("64x8x128x64") == "".join(lines).count("64x8x128x64") == 3, "nothing is cut"


def test_efficiency() -> None:
    seen = Efficiency(flop=1e9, flop_per_s=2e10, precision="fp32", peak_flop_per_s=1e11, mfu=0.2)
    says = (
        "FLOPs 1.00 GFLOP a step, 20.0 GFLOP/s in fp32 MFU 20.0% of 100 GFLOP/s, the fastest matrix product or "
        "convolution measured here"
    )
    assert " ".join(shown(render_blocks([efficiency(seen)])).split()) == says
    unknown = Efficiency(flop=1e9, flop_per_s=2e10, precision="fp64", why_no_peak="it was not measured")
    assert shown(render_blocks([efficiency(unknown)])).endswith("it was not measured")


def _mm(shapes: tuple[tuple[int, ...], ...], count: float, self_s: float, share: float) -> Operator:
    return Operator(
        name="aten::mm",
        shapes=shapes,
        count=count,
        self_s=self_s,
        device_s=None,
        share=share,
        allocated_bytes=0.0,
    )


def test_operators_that_nothing_tells_apart_are_one_row() -> None:
    every = (_mm((), 1, 0.002, 0.4), _mm((), 2, 0.001, 0.2), _mm(((2, 2),), 1, 0.001, 0.2))
    screen = shown(
        render_blocks(
            [
                operators(
                    Operators(num_steps=1, window_s=1.0, num=4, self_s=0.004, device_s=None, operators=every)
                )
            ]
        )
    )
    rows = [line.split() for line in screen.splitlines() if line.startswith("mm")]
    assert rows == [["mm", "3", "3.00", "ms", "60.0%"], ["mm", "1", "1.00", "ms", "20.0%", "2x2"]]


def test_what_an_operator_allocates_is_one_row_whatever_its_shapes() -> None:
    seen = content(60).observation
    assert seen is not None
    assert seen.deep is not None
    assert seen.deep.operators is not None
    first = seen.deep.operators.operators[0]
    twice = msgspec.structs.replace(
        seen.deep.operators,
        operators=(
            msgspec.structs.replace(first, name="aten::mm", allocated_bytes=2.0 * (1 << 20)),
            msgspec.structs.replace(
                first, name="aten::mm", shapes=((9, 9),), allocated_bytes=1.0 * (1 << 20)
            ),
        ),
    )
    deep = msgspec.structs.replace(seen.deep, operators=twice)
    shape = memory(msgspec.structs.replace(content(60), observation=msgspec.structs.replace(seen, deep=deep)))
    assert shape is not None
    tables = [one for one in shape.blocks if isinstance(one, Table) and one.header[0] == "operator"]
    assert [one.rows for one in tables] == [(("mm", "3.00 MiB"),)]
