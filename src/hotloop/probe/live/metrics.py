"""`hotloop run --metrics PORT`: steps, their times and phases for Prometheus.

Served from the process that trains, from its first optimizer step on: helpers that import torch serve nothing. Rank r
of a machine serves at PORT + r. Times are the host's: on a device that works asynchronously a phase is the time until
its work was handed over, and the step is true on average.
"""

from __future__ import annotations

import os
import sys

from hotloop.probe.live.phases import NS, PHASES, PhaseClock, decoded
from hotloop.probe.record.events import TIME_SHIFT, TOKEN_BITS, Kind

BUCKETS = (*(base * 10**power for power in range(-4, 2) for base in (1, 2, 5)), 100.0)
"""Seconds: 0.1 ms to 100 s."""


def follower(port: int, host: str) -> Metrics:
    """Return what serves the metrics.

    Raises:
        ImportError: prometheus_client is not installed beside the program.
    """
    import prometheus_client  # noqa: F401 - fails here, not at the first step

    return Metrics(port + int(os.environ.get("LOCAL_RANK", "0")), host)


class Metrics:
    """Follows a recorder.

    Args:
        port: to serve at.
        host: address to serve at.
    """

    def __init__(self, port: int, host: str) -> None:
        from prometheus_client import CollectorRegistry, Counter, Histogram

        self._at = port, host
        self._clock = PhaseClock()
        self._stepper: int | None = None
        """The optimizer whose steps are counted: of several, the one that steps first."""
        self._last_ns: int | None = None
        self.registry = CollectorRegistry()
        self._steps = Counter("hotloop_steps", "Optimizer steps", registry=self.registry)
        self._step_s = Histogram(
            "hotloop_step_seconds", "From step to step", buckets=BUCKETS, registry=self.registry
        )
        self._samples = Counter("hotloop_samples", "Samples of training batches", registry=self.registry)
        self._phase_s = Counter(
            "hotloop_phase_seconds", "Host time in each phase", ["phase"], registry=self.registry
        )

    def keep(self, event: int) -> None:
        """Count an event."""
        kind, slot, ends, now_ns = decoded(event)
        if kind is Kind.SIZE:
            self._samples.inc((event >> TIME_SHIFT) >> TOKEN_BITS)
        elif kind not in PHASES:
            return
        elif not ends:
            self._clock.begin(kind, now_ns)
        else:
            spent_s = self._clock.end(kind, now_ns)
            if spent_s is not None:
                self._phase_s.labels(PHASES[kind]).inc(spent_s)
            if kind is Kind.OPTIMIZER:
                self._stepped(slot, now_ns)

    def _stepped(self, slot: int, now_ns: int) -> None:
        if self._stepper is None:
            self._stepper = slot
            self._serve()
        if slot != self._stepper:
            return
        self._steps.inc()
        if self._last_ns is not None:
            self._step_s.observe((now_ns - self._last_ns) * NS)
        self._last_ns = now_ns

    def _serve(self) -> None:
        from prometheus_client import start_http_server

        port, host = self._at
        try:
            start_http_server(port, addr=host, registry=self.registry)
        except OSError as error:
            sys.stderr.write(f"hotloop: no metrics at {host}:{port}: {error.strerror}\n")
        else:
            sys.stderr.write(f"hotloop: metrics at http://{host}:{port}/metrics\n")

    def flush(self) -> None:
        """Nothing is pending."""
