"""Programs that the plan is tried on, whatever its figures."""

from __future__ import annotations

from pathlib import Path

_TESTS = Path("tests/programs")
_CASES = Path("../../shared/cases")
_NEW = Path("benchmarks/memory_plan/programs/kinds")

TALLIED = {
    "cnn_epochs": "cnn_epochs.py --steps 12",
    "convnet_100ms": "convnet_100ms.py --steps 6",
    "dcgan": "dcgan.py --steps 6",
    "wgan_gp": "wgan_gp.py --steps 12",
    "vae": "vae.py --steps 12",
    "gcn": "gcn.py --steps 12",
    "siamese": "siamese.py --steps 12",
    "unet3d": "unet3d.py --steps 4",
    "audio_keywords": "audio_keywords.py --steps 8",
    "tabular_adult": "tabular_adult.py --steps 20",
    "forecast_patches": "forecast_patches.py --steps 12",
    "hf_trainer": "hf_trainer.py --steps 8",
    "hf_gpt2": "hf_gpt2.py --steps 4",
    "nanogpt": "nanogpt/train.py nanogpt/config/tiny.py --steps=8",
    "lightning_module": "lightning_module.py --steps 12",
    "accelerate_loop": "accelerate_loop.py --steps 12",
    "ema_checkpointing": "ema_checkpointing.py --steps 8",
    "schedulers": "schedulers.py --steps 12",
    "tied_weights": "tied_weights.py --steps 12",
    "float64_fit": "float64_fit.py --steps 12",
    "bce_sigmoid": "bce_sigmoid.py --steps 12",
    "mlp_fast": "mlp_fast.py --steps 12",
    "ppo": "ppo.py --steps 2",
    "lbfgs": "lbfgs.py --steps 3",
    "anomaly_rows": "anomaly_rows.py --steps 8",
    "text_padding": "text_padding.py --steps 12",
}
"""Name to the command in `tests/programs`, short, so that a run on the CPU ends."""

SURVEYED = {
    **{f"kind {path.stem}": (str(_NEW), path.name) for path in sorted(_NEW.glob("*.py"))},
    **{path.stem: (str(_TESTS), path.name) for path in sorted(_TESTS.glob("*.py"))},
    "nanogpt": (str(_TESTS), "nanogpt/train.py nanogpt/config/tiny.py"),
    "flat_layout": (str(_TESTS / "flat_layout"), "train.py"),
    **{
        f"case {path.parent.name}": (str(path.parent), path.name) for path in sorted(_CASES.glob("*/slow.py"))
    },
}
"""Name to its folder and command."""
