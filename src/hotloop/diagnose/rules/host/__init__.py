"""What the host does beside computing."""

from hotloop.diagnose.rules.host import (
    anomaly_mode_on,
    busy_machine,
    copy_in_step,
    debug_environment_set,
    garbage_collected_in_step,
    hot_line_before_backward,
    hot_line_outside_phases,
    loop_outside_phases,
    oversubscribed_threads,
    profiler_left_on,
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
    garbage_collected_in_step.rule,
    hot_line_before_backward.rule,
    hot_line_outside_phases.rule,
    loop_outside_phases.rule,
    oversubscribed_threads.rule,
    profiler_left_on.rule,
    stolen_time.rule,
    sync_in_step.rule,
    tensor_creation_in_step.rule,
    throttled_device.rule,
    undersubscribed_threads.rule,
    unstable_step.rule,
)
