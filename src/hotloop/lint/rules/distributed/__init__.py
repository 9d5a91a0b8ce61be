"""Several devices."""

from hotloop.lint.rules.distributed import (
    all_reduce_every_micro_step,
    barrier_in_step,
    collective_for_logging,
    data_parallel,
    find_unused_parameters_on,
    gradients_copied_to_buckets,
    slow_backend,
)

RULES = (
    all_reduce_every_micro_step.rule,
    barrier_in_step.rule,
    collective_for_logging.rule,
    data_parallel.rule,
    find_unused_parameters_on.rule,
    gradients_copied_to_buckets.rule,
    slow_backend.rule,
)
