"""Lightning and Fabric: precision and anomaly detection are keywords of the Trainer; loaders stay the program's own."""

from hotloop.integrations.framework import Framework

LIGHTNING = Framework(
    name="Lightning",
    classes=frozenset(
        {
            "lightning.Trainer",
            "lightning.pytorch.Trainer",
            "pytorch_lightning.Trainer",
            "lightning.pytorch.trainer.trainer.Trainer",
            "pytorch_lightning.trainer.trainer.Trainer",
        }
    ),
    knobs={
        "autocast_bf16": lambda _: {"precision": '"bf16-mixed"'},
        "autocast_fp16": lambda _: {"precision": '"16-mixed"'},
        "debug_apis_off": lambda _: {"detect_anomaly": "False"},
        "kernel_autotune": lambda _: {"benchmark": "True"},
    },
)
FABRIC = Framework(
    name="Lightning Fabric",
    classes=frozenset(
        {
            "lightning.Fabric",
            "lightning.fabric.Fabric",
            "lightning_fabric.Fabric",
            "lightning.fabric.fabric.Fabric",
            "lightning_fabric.fabric.Fabric",
        }
    ),
    knobs={
        "autocast_bf16": lambda _: {"precision": '"bf16-mixed"'},
        "autocast_fp16": lambda _: {"precision": '"16-mixed"'},
    },
)
