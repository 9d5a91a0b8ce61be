"""What is switched on without a look at the program: checklists, and the switches of frameworks.

pytorch-autotune and loadtune take a model or a workload that is rebuilt for them, on one fixed batch: they do not run
on an unmodified program, so there is nothing of theirs to measure here.
"""

from __future__ import annotations

from benchmarks.tune.tuned import ByHand

_BF16, _COMPILE = ByHand("autocast_bf16"), ByHand("compile", {"mode": "default"})
Recipes = dict[str, tuple[ByHand, ...]]
"""By name."""
RECIPES: Recipes = {
    "a checklist (workers, bf16, channels-last, fused, compile)": (
        ByHand("loader_workers", {"num_workers": 2, "persistent_workers": True}),
        _BF16,
        ByHand("channels_last"),
        ByHand("fused_optimizer"),
        _COMPILE,
    ),
    'Lightning: precision="bf16-mixed"': (_BF16,),
    'accelerate: mixed_precision="bf16", dynamo_backend="inductor"': (_BF16, _COMPILE),
}
