"""accelerate: precision is a keyword of Accelerator, or a setting in the file of `accelerate launch --config_file`."""

from hotloop.integrations.framework import Framework

ACCELERATE = Framework(
    name="accelerate",
    classes=frozenset({"accelerate.Accelerator", "accelerate.accelerator.Accelerator"}),
    knobs={
        "autocast_bf16": lambda _: {"mixed_precision": '"bf16"'},
        "autocast_fp16": lambda _: {"mixed_precision": '"fp16"'},
    },
    launcher_file=frozenset({"compute_environment", "distributed_type"}),
)
