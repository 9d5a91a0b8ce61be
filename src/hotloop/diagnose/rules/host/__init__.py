"""What the host does beside computing."""

from hotloop.diagnose.rules.host import (
    anomaly_mode_on,
    busy_machine,
    debug_environment_set,
    loop_outside_phases,
    oversubscribed_threads,
    undersubscribed_threads,
    unstable_step,
)

RULES = (
    anomaly_mode_on.rule,
    busy_machine.rule,
    debug_environment_set.rule,
    loop_outside_phases.rule,
    oversubscribed_threads.rule,
    undersubscribed_threads.rule,
    unstable_step.rule,
)
