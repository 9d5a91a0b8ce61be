"""What the model and the optimizer compute."""

from hotloop.diagnose.rules.compute import (
    batch_too_small,
    double_precision,
    forward_without_backward,
    full_precision_step,
    idle_device,
    low_efficiency,
    many_tiny_operators,
    pointwise_chains,
    small_inference_batch,
    tensor_copies,
    unfused_optimizer,
)

RULES = (
    batch_too_small.rule,
    double_precision.rule,
    forward_without_backward.rule,
    full_precision_step.rule,
    idle_device.rule,
    low_efficiency.rule,
    many_tiny_operators.rule,
    pointwise_chains.rule,
    small_inference_batch.rule,
    tensor_copies.rule,
    unfused_optimizer.rule,
)
