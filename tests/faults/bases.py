"""The base programs, without a fault, and what their names are."""

from __future__ import annotations

from pathlib import Path

from tests.faults.case import Base

_PROGRAMS = Path(__file__).parents[1] / "programs"
_LONG = ("--epochs", "1000")

BASES = {
    base.name: base
    for base in (
        Base("conv_images", "model", "x", "output"),
        Base("mlp_tabular", "net", "rows", "prediction"),
        Base("transformer_tokens", "self.model", "tokens", "logits"),
        Base("lstm_series", "network", "series", "forecast"),
        Base("autoencoder", "autoencoder", "picture", "rebuilt"),
        Base("mixer_accumulating", "mixer", "batch['patches']", "scores"),
        Base("cnn_epochs", "model", "data", "output", path=_PROGRAMS / "cnn_epochs.py", arguments=_LONG),
        Base("unet3d", "net", "image", "logits", path=_PROGRAMS / "unet3d.py", arguments=_LONG),
        Base(
            "gan_shapes",
            "critic",
            "real",
            "verdict",
            "opt_artist.step()",
            backward_at="loss_artist.backward()",
        ),
        Base("gnn_scatter", "net", "nodes, edges", "scores"),
        Base("policy_gradient", "policy", "states", "logits"),
        Base("lightning_signals", "self", "batch[0]", "scores", "self.seen += 1", "return loss"),
        Base(
            "hf_causal",
            "model",
            "torch.randint(0, 400, (8, 64))",
            "outputs.logits",
            "self.steps += 1",
            "return (loss, outputs)",
        ),
        Base("accelerate_tags", "tagger", "x", "guess", backward_at="accelerator.backward(loss)"),
        Base("stream_iterable", "separator", "mixed", "guess"),
        Base("memmap_rows", "self.pair", "rows", "back"),
        Base("ddp_pair", "model", "images", "logits", launcher=("torchrun", "--nproc-per-node", "2")),
        Base("speech_config", "model", "batch['past']", "predicted"),
    )
}
