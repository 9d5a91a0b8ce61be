"""All patterns, in the order in which they are tried."""

from hotloop.model.finding import Finding
from hotloop.trace.causes.patterns import communication, compute, host
from hotloop.trace.causes.patterns.idle_pattern import Pattern, Seen

_PATTERNS: tuple[Pattern, ...] = (
    host.input_bound,
    host.sync_in_step,
    host.pageable_copies,
    host.launch_bound,
    communication.exposed_communication,
    compute.fp32_matmul,
    compute.odd_sizes,
    compute.layout_conversions,
    compute.extra_copies,
    compute.unfused_optimizer,
    compute.memset_gradients,
    compute.recompilation,
)


def find_patterns(seen: Seen) -> tuple[Finding, ...]:
    """What is seen, the most expensive first; nothing where there are no device events."""
    if not seen.device.num:
        return ()
    found = [finding for pattern in _PATTERNS for finding in pattern(seen)]
    return tuple(sorted(found, key=lambda finding: -(finding.cost_s or 0.0)))
