"""The work of each line: operators in the forward, and the graph nodes it makes with their time in the backward.

The lines come from `line_trace`, operators and nodes from torch's profiler, in the same few steps.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from time import monotonic_ns
from typing import Any

import torch

from hotloop.probe.instruments.instrument import Instrument, Unavailable
from hotloop.probe.instruments.line_sums import Span, line_sums
from hotloop.probe.instruments.line_trace import LineTrace
from hotloop.probe.instruments.torch_profiler import TorchProfiler
from hotloop.probe.probe import Probe

NUM_CALIBRATING = 64


class LineWork(Instrument):
    """Follows lines, operators and nodes.

    Args:
        probe: the probe.
    """

    min_steps = 1
    max_steps = 3
    seconds = 0.2
    profiles = True

    def __init__(self, probe: Probe) -> None:
        super().__init__(probe)
        self._profiler = TorchProfiler(probe, "line_work")
        self._trace: LineTrace | None = None
        self._whole = (0, 0)
        """Steps that ended while it followed, and the lines until then."""
        self._broken = ""

    def start(self) -> None:
        """Begin to follow.

        Raises:
            Unavailable: the program is traced or profiled already, or runs compiled code, which has no lines.
        """
        num_nodes = getattr(torch._C._autograd, "_get_sequence_nr", None)
        if num_nodes is None:
            raise Unavailable("this torch does not number the nodes of its graph")
        if sys.gettrace() is not None:
            raise Unavailable("the program has a trace function of its own")
        if self.probe.compiles():
            raise Unavailable("the program runs compiled code, which has no lines")
        self._profiler.start()
        self._trace = LineTrace(num_nodes)
        self._trace.start(sys._getframe(1))

    def step(self) -> None:
        """Note that a step is whole."""
        if self._trace is not None and not self._trace.full and not self._broken:
            self._whole = (self._whole[0] + 1, self._trace.num_events)

    def stop(self) -> dict[str, Any]:
        """Stop following; return the work of each place.

        Raises:
            Unavailable: no step was followed to its end.
        """
        trace, self._trace = self._trace, None
        if trace is not None:
            trace.end()
        calibrates_ns = monotonic_ns()
        _calibrate()
        profiler = self._profiler.stop()
        steps, lines = self._whole
        if trace is None or self._broken:
            raise Unavailable(self._broken or "it was not started")
        if not steps:
            lines = trace.num_events  # of a step with more lines than are followed, those of its beginning
        spans = sorted(
            self._spans(profiler.kineto_results.events()), key=lambda one: (one.begin_ns, -one.end_ns)
        )
        return {"steps": steps, **line_sums(trace, lines, spans, calibrates_ns)}

    def step_aside(self) -> None:
        """Be gone while torch.compile reads code; it does not come back."""
        self._broken = "the program compiled code meanwhile"
        if self._trace is not None:
            self._trace.end()

    def after_fork(self) -> None:
        """Leave a forked child alone."""
        if self._trace is not None:
            self._trace.end()

    def _spans(self, events: Iterable[Any]) -> Iterator[Span]:
        for event in events:
            name = event.name()
            if "::" in name and event.device_type().name == "CPU":
                begin_ns = self._profiler.monotonic_ns(event.start_ns())
                end_ns = begin_ns + event.duration_ns()
                yield Span(name, begin_ns, end_ns, event.sequence_nr(), event.start_thread_id())


def _calibrate() -> None:
    """Run operators and nodes that compute next to nothing: their time is that of calling one."""
    with torch.enable_grad():
        start = torch.ones((), device="cpu", requires_grad=True)
        value = start
        for _ in range(NUM_CALIBRATING):
            value = value * 1.0
        # Not `torch.autograd.grad`, which is one of the hook points.
        engine = torch.autograd.Variable._execution_engine
        engine.run_backward((value,), (torch.ones_like(value),), False, False, (start,), True, False)
