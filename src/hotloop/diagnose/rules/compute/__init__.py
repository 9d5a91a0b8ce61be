"""What the model and the optimizer compute."""

from hotloop.diagnose.rules.compute import batch_too_small, full_precision_step, unfused_optimizer

RULES = (
    batch_too_small.rule,
    full_precision_step.rule,
    unfused_optimizer.rule,
)
