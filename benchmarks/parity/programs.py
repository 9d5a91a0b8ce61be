"""Ten small programs of ten kinds, three of them chaotic, that end by themselves after a hundred steps or so."""

from __future__ import annotations

from pathlib import Path

import msgspec

PROGRAMS = Path(__file__).parents[2] / "tests" / "programs"


class Program(msgspec.Struct, frozen=True):
    """A script of `tests/programs` and its words."""

    name: str
    script: str
    words: tuple[str, ...]
    anchor: str = "optimizer"
    """What ends a step."""

    @property
    def path(self) -> Path:
        """The script."""
        return PROGRAMS / self.script


ALL = (
    Program(
        "cnn", "cnn_epochs.py", ("--steps", "100", "--batch-size", "16", "--samples", "1600", "--epochs", "1")
    ),
    Program("vae", "vae.py", ("--steps", "120")),
    Program("dcgan", "dcgan.py", ("--steps", "80", "--niter", "1", "--batchSize", "16")),
    Program("wgan_gp", "wgan_gp.py", ("--steps", "120")),
    Program(
        "nanogpt",
        "nanogpt/train.py",
        (
            str(PROGRAMS / "nanogpt/config/tiny.py"),
            "--steps=120",
            "--gradient_accumulation_steps=1",
            "--eval_interval=1000",
            "--dropout=0.1",
        ),
    ),
    Program("lstm", "word_language_model.py", ("--steps", "100", "--epochs", "1"), anchor="backward"),
    Program("gcn", "gcn.py", ("--steps", "120")),
    Program("ppo", "ppo.py", ("--steps", "20")),
    Program("reinforce", "reinforce_deepcopy.py", ("--steps", "120")),
    Program("gru", "text_padding.py", ("--steps", "60")),
)
