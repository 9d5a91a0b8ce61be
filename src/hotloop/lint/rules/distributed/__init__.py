"""Several devices."""

from hotloop.lint.rules.distributed import (
    all_reduce_every_micro_step,
    barrier_in_step,
    collective_for_logging,
    data_parallel,
    find_unused_parameters_on,
    gradients_copied_to_buckets,
    graph_not_static,
    slow_backend,
    small_buckets,
)

RULES = (
    all_reduce_every_micro_step.rule,
    barrier_in_step.rule,
    collective_for_logging.rule,
    data_parallel.rule,
    find_unused_parameters_on.rule,
    gradients_copied_to_buckets.rule,
    graph_not_static.rule,
    slow_backend.rule,
    small_buckets.rule,
)
