"""What to do about a finding, where the user's command is not known."""

from __future__ import annotations

from hotloop.model.finding import Finding


def advice(finding: Finding) -> str:
    """Return what to do, and how to measure it, where the user's command is not known."""
    if not finding.optimization:
        return f"{finding.advice} (fix by hand)"
    return f"{finding.advice} (measure it: hotloop tune --only {finding.optimization} COMMAND)"
