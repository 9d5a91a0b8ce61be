"""All patterns: of idle time, and of what the device works at."""

from hotloop.model.finding import Finding
from hotloop.trace.causes.patterns import communication, compute, host
from hotloop.trace.causes.patterns.idle_pattern import Pattern, Seen

_OF_IDLE_TIME: tuple[Pattern, ...] = (host.input_bound, host.sync_in_step, host.launch_bound)
_OF_WORK: tuple[Pattern, ...] = (
    host.pageable_copies,
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
    patterns = (*_OF_IDLE_TIME, *_OF_WORK) if seen.knows_idle else _OF_WORK
    found = [finding for pattern in patterns for finding in pattern(seen)]
    return tuple(sorted(found, key=lambda finding: -(finding.cost_s or 0.0)))
