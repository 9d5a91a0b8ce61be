"""Lightning and Fabric: precision and anomaly detection are keywords of the Trainer; loaders stay the program's own."""

from collections.abc import Mapping
from typing import Any

from hotloop.integrations.framework import Framework
from hotloop.model.sites import SiteKind, Sites


def _clips_nothing(_: Mapping[str, Any], sites: Sites) -> bool:
    """Return whether no gradients are clipped: for a fused optimizer Lightning refuses to under its own precision."""
    return not sites.of(SiteKind.CLIP)


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
    checks={"autocast_bf16": _clips_nothing},
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
