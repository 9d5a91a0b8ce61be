"""What was said of one program, and whether it is right."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.case import Case


@dataclass(frozen=True)
class Outcome:
    """What was said of one program."""

    case: Case
    diagnosis: dict[str, Any] | None
    """None: no diagnosis came."""
    errors: str = ""
    other: dict[str, Any] | None = None
    """What TraceML said; None: it was not asked."""

    @property
    def findings(self) -> list[dict[str, Any]]:
        """The findings, the first first."""
        return list(self.diagnosis["findings"]) if self.diagnosis else []

    @property
    def loud(self) -> list[str]:
        """Codes louder than information."""
        return [one["code"] for one in self.findings if one["severity"] != "info"]

    @property
    def top(self) -> str:
        """The code of the first finding; for clean programs the first warning."""
        if self.diagnosis is None:
            return "no diagnosis"
        if self.case.fault is None:
            return self.loud[0] if self.loud else "no warning"
        return str(self.findings[0]["code"]) if self.findings else "nothing"

    @property
    def expected(self) -> str:
        """What would be right."""
        if self.case.fault is None:
            return "no warning"
        return " or ".join(sorted(self.case.fault.expected))

    @property
    def right(self) -> bool:
        """Whether the top finding is the injected fault; for clean programs: whether nothing is loud."""
        if self.diagnosis is None:
            return False
        return not self.loud if self.case.fault is None else self.top in self.case.fault.expected

    @property
    def line(self) -> str:
        """Whether the top finding names a line of the fault: `yes`, `other`, or `-` where it names none."""
        if self.case.fault is None or not self.findings:
            return ""
        first = self.findings[0]
        if first["line"] is None or first["path"] is None:
            return "-"
        here = (Path(first["path"]).name, first["line"]) in self.case.places()
        return "yes" if here else f"other ({Path(first['path']).name}:{first['line']})"

    @property
    def sample_s(self) -> float | None:
        """Time of the loop per sample, or per step where no batch was seen: what a fault makes larger."""
        observation = self.diagnosis["observation"] if self.diagnosis else None
        if not observation or not observation["step"]:
            return None
        step, parts = observation["step"], observation["run"]["parts"]
        steps_s = sum(spent for name, spent in parts.items() if name.startswith("step_"))
        recurring = (
            "epoch_boundary_s",
            "checkpoint_s",
            "evaluation_s",
            "rollout_s",
            "irregular_step_s",
            "logging_s",
        )
        whole_s = steps_s + sum(parts.get(name, 0.0) for name in recurring)
        stretched = whole_s / steps_s if steps_s else 1.0
        samples = step["samples_per_s"]
        return float(stretched / samples if samples else stretched * step["median_s"])
