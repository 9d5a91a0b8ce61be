"""What the host does beside computing."""

from hotloop.diagnose.rules.host import (
    anomaly_mode_on,
    busy_machine,
    copy_in_step,
    debug_environment_set,
    hot_line_before_backward,
    hot_line_outside_phases,
    loop_outside_phases,
    oversubscribed_threads,
    stolen_time,
    sync_in_step,
    tensor_creation_in_step,
    throttled_device,
    undersubscribed_threads,
    unstable_step,
)

RULES = (
    anomaly_mode_on.rule,
    busy_machine.rule,
    copy_in_step.rule,
    debug_environment_set.rule,
    hot_line_before_backward.rule,
    hot_line_outside_phases.rule,
    loop_outside_phases.rule,
    oversubscribed_threads.rule,
    stolen_time.rule,
    sync_in_step.rule,
    tensor_creation_in_step.rule,
    throttled_device.rule,
    undersubscribed_threads.rule,
    unstable_step.rule,
)
