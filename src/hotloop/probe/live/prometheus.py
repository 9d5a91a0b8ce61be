"""`hotloop run --metrics PORT`: the meter served for Prometheus; rank r of a machine serves at PORT + r."""

from __future__ import annotations

import sys

from hotloop.probe.live.meter import BUCKETS, PHASE_S, SAMPLES, STEP_S, STEPS, Meter
from hotloop.probe.process.rank import number_on_machine


def follower(port: int, host: str) -> Meter:
    """Return what serves the metrics.

    Raises:
        ImportError: prometheus_client is not installed beside the program.
    """
    return Meter(Prometheus(port, host))


class Prometheus:
    """Metrics at an address.

    Args:
        port: to serve at, of the first rank of this machine.
        host: address to serve at.
    """

    def __init__(self, port: int, host: str) -> None:
        from prometheus_client import CollectorRegistry, Counter, Histogram

        self._at = port, host
        self.registry = CollectorRegistry()
        self._steps = Counter("hotloop_steps", STEPS, registry=self.registry)
        self._step_s = Histogram("hotloop_step_seconds", STEP_S, buckets=BUCKETS, registry=self.registry)
        self._samples = Counter("hotloop_samples", SAMPLES, registry=self.registry)
        self._phase_s = Counter("hotloop_phase_seconds", PHASE_S, ["phase"], registry=self.registry)

    def open(self) -> None:
        """Serve."""
        from prometheus_client import start_http_server

        first, host = self._at
        port = first + number_on_machine()  # known by now, also of ranks that no launcher started
        try:
            start_http_server(port, addr=host, registry=self.registry)
        except OSError as error:
            sys.stderr.write(f"hotloop: no metrics at {host}:{port}: {error.strerror}\n")
        else:
            sys.stderr.write(f"hotloop: metrics at http://{host}:{port}/metrics\n")

    def step(self, seconds: float | None) -> None:
        """Count a step."""
        self._steps.inc()
        if seconds is not None:
            self._step_s.observe(seconds)

    def samples(self, num: int) -> None:
        """Count samples."""
        self._samples.inc(num)

    def phase(self, name: str, seconds: float) -> None:
        """Add time in a phase."""
        self._phase_s.labels(name).inc(seconds)
