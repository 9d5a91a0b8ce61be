"""Host samples as a speedscope file: one sampled profile for each kind of process."""

from __future__ import annotations

from typing import Any

from hotloop.model.deep import HostSamples, Sample

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_TITLES = {"train": "training thread", "worker": "loader workers", "thread": "other threads"}


def speedscope(host: HostSamples, name: str) -> dict[str, Any]:
    """Return the document, ready to be written as JSON.

    Each stack begins with its phase, so that the flame graph is split by phase first.

    Args:
        host: the samples.
        name: the program's.
    """
    phases = sorted({sample.phase for sample in host.samples if sample.phase})
    frames = [{"name": frame.function, "file": frame.path, "line": frame.line} for frame in host.frames] + [
        {"name": f"[{phase}]"} for phase in phases
    ]
    phase_at = {phase: len(host.frames) + number for number, phase in enumerate(phases)}
    profiles = [
        _profile(title, [one for one in host.samples if one.process == process], phase_at)
        for process, title in _TITLES.items()
        if any(one.process == process for one in host.samples)
    ]
    return {
        "$schema": SCHEMA,
        "exporter": "hotloop",
        "name": name,
        "activeProfileIndex": 0,
        "shared": {"frames": frames},
        "profiles": profiles,
    }


def _profile(title: str, samples: list[Sample], phase_at: dict[str, int]) -> dict[str, Any]:
    ordered = sorted(samples, key=lambda sample: (sample.phase or "", sample.stack))
    return {
        "type": "sampled",
        "name": title,
        "unit": "seconds",
        "startValue": 0,
        "endValue": sum(sample.spent_s for sample in ordered),
        "samples": [
            [*([phase_at[sample.phase]] if sample.phase else []), *sample.stack] for sample in ordered
        ],
        "weights": [sample.spent_s for sample in ordered],
    }
