"""Dataflow: what each operation computes from what, and where gradients go.

For a few steps a mode of torch's dispatcher sees every operation below autograd, with the line that it came from and
how long it took (processor time, where nothing but that computes). Operations of a backward pass belong to the one
whose graph node is running, which has its number.
"""

from __future__ import annotations

from time import perf_counter_ns, thread_time_ns
from typing import Any

import torch

from hotloop.probe.instruments.dataflow_rows import rows
from hotloop.probe.instruments.dispatch_mode import operator_mode, remove_mode
from hotloop.probe.instruments.engine_passes import watch_engine
from hotloop.probe.instruments.instrument import Instrument, Unavailable
from hotloop.probe.instruments.operation_watch import OperationWatch
from hotloop.probe.probe import Probe


class Dataflow(Instrument):
    """Watches operations.

    Args:
        probe: the probe.
    """

    min_steps = 3
    max_steps = 6
    seconds = 1.0

    def __init__(self, probe: Probe) -> None:
        super().__init__(probe)
        self._watch: Any = None
        self._mode: Any = None
        self._engine: Any = None

    def start(self) -> None:
        """Put the mode on the dispatcher's stack.

        Raises:
            Unavailable: something is compiled, which a mode would have compiled anew; or this torch is too old.
        """
        if self.probe.compiles():
            raise Unavailable("a mode of the dispatcher would have compiled code compiled anew")
        from torch.utils._python_dispatch import _push_mode

        if not hasattr(torch._C, "_current_autograd_node"):
            raise Unavailable("this torch does not tell which node of a graph is running")
        self._watch = OperationWatch(self.probe)
        self._mode = _mode(self._watch)
        self._engine = watch_engine(self._watch.enter, self._watch.leave)
        _push_mode(self._mode)

    def step(self) -> None:
        """Begin the next step's numbers."""
        self._watch.next_step()

    def stop(self) -> Any:
        """Take the mode away; return what was seen, by stack of lines."""
        self._leave()
        return rows(self._watch)

    def after_fork(self) -> None:
        """In a forked child nothing is watched."""
        self._leave()

    def _leave(self) -> None:
        if self._mode is not None:
            remove_mode(self._mode)
            self._mode = None
        if self._engine is not None:
            self._engine()
            self._engine = None


def _mode(watch: OperationWatch) -> Any:
    from torch._ops import HigherOrderOperator

    probe, clock = watch.probe, watch.probe.boundary.clock
    # On a CPU what others take from the thread is not its own time; a device is waited for.
    now = thread_time_ns if clock.synchronize is None else perf_counter_ns

    def run(func: Any, args: Any, kwargs: Any) -> Any:
        if isinstance(func, HigherOrderOperator) or not watch.wants():
            return func(*args, **kwargs)
        known, looked = None, False
        with probe.survive("dataflow:before"):
            known = watch.before(func, args, kwargs)
            looked = True
        begin = now()
        out = func(*args, **kwargs)
        if looked:
            with probe.survive("dataflow:after"):
                clock.drain()
                watch.after(func, args, kwargs, known, out, now() - begin)
        return out

    return operator_mode(run)
