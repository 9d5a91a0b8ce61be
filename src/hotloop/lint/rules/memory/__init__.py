"""What is kept, and for how long."""

from hotloop.lint.rules.memory import (
    cache_emptied_in_step,
    evaluation_with_gradients,
    graph_retained,
    loss_graph_kept_alive,
    outputs_kept_on_device,
    reentrant_checkpoint,
    zero_grad_not_none,
)

RULES = (
    cache_emptied_in_step.rule,
    evaluation_with_gradients.rule,
    graph_retained.rule,
    loss_graph_kept_alive.rule,
    outputs_kept_on_device.rule,
    reentrant_checkpoint.rule,
    zero_grad_not_none.rule,
)
