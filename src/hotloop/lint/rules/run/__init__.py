"""The run as a whole."""

from hotloop.lint.rules.run import (
    compile_in_loop,
    evaluation_in_step,
    optimizer_built_in_step,
    per_step_checkpoint,
)

RULES = (
    compile_in_loop.rule,
    evaluation_in_step.rule,
    optimizer_built_in_step.rule,
    per_step_checkpoint.rule,
)
