"""What the machine did while a program was observed."""

from __future__ import annotations

import msgspec


class Monitor(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of the machine; its unit ends its name, a share is 0 to 1."""

    mean: float
    """Over the steady steps, as are the next two."""
    p95: float
    max: float
    samples: tuple[float | None, ...]
    """At `Monitors.times_s`; None: not measured then."""


class Monitors(msgspec.Struct, frozen=True, kw_only=True):
    """The machine over the run, seen from outside the program."""

    interval_s: float
    """Between samples."""
    begin_s: float
    """When the steady steps began, since the command was started."""
    end_s: float
    times_s: tuple[float, ...]
    """When samples were taken, since the command was started."""
    metrics: dict[str, Monitor]
    """By name, labels in braces: `cpu_busy_ratio`, `gpu_power_w{gpu="0"}`."""

    def mean(self, name: str) -> float | None:
        """Return a metric's mean over the steady steps; None: not measured."""
        found = self.metrics.get(name)
        return None if found is None else found.mean

    def labelled(self, name: str) -> dict[str, Monitor]:
        """Return a metric that has labels: what stands in the braces, and its values."""
        return {
            full[len(name) + 1 : -1]: monitor
            for full, monitor in self.metrics.items()
            if full.startswith(f"{name}{{")
        }

    def of_own_gpus(self, name: str) -> dict[str, Monitor]:
        """Return a metric of GPUs, without those that the driver saw no process of the program on."""
        own = self.labelled("gpu_own_num_processes")
        unused = {label for label, monitor in own.items() if not monitor.max}
        return {
            label: monitor
            for label, monitor in self.labelled(name).items()
            if label.split(",")[0] not in unused
        }
