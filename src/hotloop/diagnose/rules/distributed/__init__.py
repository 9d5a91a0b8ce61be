"""Several processes or devices."""

from hotloop.diagnose.rules.distributed import communication_bound, data_parallel, straggler_rank

RULES = (
    communication_bound.rule,
    data_parallel.rule,
    straggler_rank.rule,
)
