"""The run as a whole."""

from hotloop.diagnose.rules.run import (
    compilation_heavy,
    evaluation_in_step,
    frequent_checkpoints,
    frequent_evaluation,
    logging_in_step,
    repeated_compilation,
    slow_start,
    steps_get_longer,
)

RULES = (
    compilation_heavy.rule,
    evaluation_in_step.rule,
    frequent_checkpoints.rule,
    frequent_evaluation.rule,
    logging_in_step.rule,
    repeated_compilation.rule,
    slow_start.rule,
    steps_get_longer.rule,
)
