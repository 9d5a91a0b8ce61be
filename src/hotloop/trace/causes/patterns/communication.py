"""What ranks do that keeps devices waiting."""

from collections.abc import Iterator

from hotloop.model.finding import Finding, Severity
from hotloop.model.quantities import duration
from hotloop.trace.causes.patterns.idle_pattern import NOTABLE, Seen


def exposed_communication(seen: Seen) -> Iterator[Finding]:
    """Collectives that no computation hides."""
    exposed = seen.device.exposed_communication_us
    if seen.share(exposed) < 2 * NOTABLE:
        return
    hidden = seen.device.overlap_us / seen.device.communication_us
    yield Finding(
        code="exposed-communication",
        title="Collectives are not hidden behind computation",
        severity=Severity.WARNING,
        metric="device.exposed_communication_us",
        cost_s=seen.per_step_s(exposed),
        evidence=f"{duration(exposed / 1e6)} ({seen.share(exposed):.1%}) exposed; {hidden:.1%} overlaps",
        advice="accumulate without synchronizing, tune buckets, compress gradients, or look for a late rank",
    )
