"""Plots draw the figures of the analysis; a stand-in takes the place of matplotlib's axes."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hotloop.model.errors import HotloopError
from hotloop.trace import analyze_trace, read_trace
from hotloop.trace.plot import plot_breakdown, plot_memory


class _Axes:
    """Remembers what was drawn."""

    def __init__(self) -> None:
        self.bars: dict[str, float] = {}
        self.lines: list[tuple[Any, Any]] = []

    def barh(self, labels: list[str], values: Any, left: Any, label: str) -> None:
        self.bars[label] = float(np.sum(values))

    def step(self, x: Any, y: Any, **_: Any) -> None:
        self.lines.append((x, y))

    def set_xlabel(self, _: str) -> None: ...

    def set_ylabel(self, _: str) -> None: ...

    def invert_yaxis(self) -> None: ...

    def legend(self, **_: Any) -> None: ...


def test_bars_add_up_to_the_span(small_trace: Path) -> None:
    analysis = analyze_trace(read_trace(small_trace))
    axes: Any = _Axes()
    plot_breakdown(analysis, ax=axes)
    assert analysis.device is not None
    assert sum(axes.bars.values()) == pytest.approx(analysis.device.span_us / 1000)


def test_memory_line_has_the_peak(shared: Path) -> None:
    trace = read_trace(shared / "bert_h100.json.gz")
    axes: Any = _Axes()
    plot_memory(trace, ax=axes)
    ((_, allocated),) = axes.lines
    assert allocated.max() * 1e9 == pytest.approx(101305344)


def test_without_matplotlib_it_says_what_to_install(
    small_trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(HotloopError, match="matplotlib"):
        plot_breakdown(analyze_trace(read_trace(small_trace)))
