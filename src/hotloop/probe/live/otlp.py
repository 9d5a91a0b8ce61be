"""`hotloop run --otlp URL`: the same for OpenTelemetry, sent to a collector every ten seconds and at the end.

The library's own variables hold: OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_EXPORTER_OTLP_HEADERS.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from hotloop.probe.live.meter import BUCKETS, PHASE_S, SAMPLES, STEP_S, STEPS, Meter
from hotloop.probe.process.rank import rank_and_world

EVERY_MS = 10_000
PATH = "/v1/metrics"
"""Where a collector takes metrics over HTTP."""


def follower(url: str) -> Meter:
    """Return what sends the metrics.

    Raises:
        ImportError: the OpenTelemetry SDK is not installed beside the program.
    """
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

    return Meter(OpenTelemetry(lambda: OTLPMetricExporter(endpoint=f"{url.rstrip('/')}{PATH}"), url))


class OpenTelemetry:
    """Metrics that are sent.

    Args:
        exporter: makes what sends them, in the process that trains.
        url: of the collector, as the user wrote it.
    """

    def __init__(self, exporter: Callable[[], Any], url: str) -> None:
        from opentelemetry.sdk import metrics  # noqa: F401 - fails here, not at the first step

        self._exporter = exporter
        self._url = url
        self._provider: Any = None
        self._steps: Any = None
        self._step_s: Any = None
        self._samples: Any = None
        self._phase_s: Any = None
        self._labels: dict[str, str] = {}

    def open(self) -> None:
        """Begin to send, from a provider of our own: the program may have one itself."""
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

        rank, _ = rank_and_world()
        self._labels = {} if rank is None else {"rank": str(rank)}
        reader = PeriodicExportingMetricReader(self._exporter(), export_interval_millis=EVERY_MS)
        self._provider = MeterProvider(metric_readers=[reader])
        meter = self._provider.get_meter("hotloop")
        self._steps = meter.create_counter("hotloop.steps", "1", STEPS)
        self._step_s = meter.create_histogram(
            "hotloop.step.duration", "s", STEP_S, explicit_bucket_boundaries_advisory=BUCKETS
        )
        self._samples = meter.create_counter("hotloop.samples", "1", SAMPLES)
        self._phase_s = meter.create_counter("hotloop.phase.duration", "s", PHASE_S)
        sys.stderr.write(f"hotloop: metrics go to {self._url}{PATH}\n")

    def step(self, seconds: float | None) -> None:
        """Count a step."""
        self._steps.add(1, self._labels)
        if seconds is not None:
            self._step_s.record(seconds, self._labels)

    def samples(self, num: int) -> None:
        """Count samples."""
        self._samples.add(num, self._labels)

    def phase(self, name: str, seconds: float) -> None:
        """Add time in a phase."""
        self._phase_s.add(seconds, {**self._labels, "phase": name})

    def close(self) -> None:
        """Send what is left; the library does so itself when the interpreter ends."""
        self._provider.shutdown()
