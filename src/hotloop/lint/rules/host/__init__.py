"""What the host does in each step."""

from hotloop.lint.rules.host import (
    anomaly_mode_on,
    cat_grows_in_loop,
    debug_environment_set,
    garbage_collected_in_step,
    gradcheck_in_training,
    one_thread_forced,
    parameter_loop_in_step,
    per_step_logging,
    profiler_left_on,
    python_loop_over_tensor,
    repeated_transfer,
    sync_in_step,
    synchronize_in_step,
    tensor_created_on_cpu_then_moved,
    tensor_from_list_in_step,
)

RULES = (
    anomaly_mode_on.rule,
    cat_grows_in_loop.rule,
    debug_environment_set.rule,
    garbage_collected_in_step.rule,
    gradcheck_in_training.rule,
    one_thread_forced.rule,
    parameter_loop_in_step.rule,
    per_step_logging.rule,
    profiler_left_on.rule,
    python_loop_over_tensor.rule,
    repeated_transfer.rule,
    sync_in_step.rule,
    synchronize_in_step.rule,
    tensor_created_on_cpu_then_moved.rule,
    tensor_from_list_in_step.rule,
)
