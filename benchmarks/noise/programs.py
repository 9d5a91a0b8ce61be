"""The programs that are recorded: one of each kind, with steps of 2 to 120 ms on two cores."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from hotloop.model.observation import Anchor

PROGRAMS = Path(__file__).parents[2] / "tests" / "programs"
_FOREVER = "1000000000"


class Program(msgspec.Struct, frozen=True):
    """A training program that does not end by itself."""

    name: str
    words: tuple[str, ...]
    anchor: Anchor = Anchor("optimizer", 0, 1)

    @property
    def argv(self) -> tuple[str, ...]:
        """The command, from any folder."""
        script, *rest = self.words
        paths = [str(PROGRAMS / word) if word.endswith(".py") else word for word in rest]
        return (sys.executable, str(PROGRAMS / script), *paths)


ALL = (
    Program("convolutional", ("convnet_100ms.py", "--steps", _FOREVER, "--batch-size", "64")),
    Program(
        "mlp with loader", ("mlp_fast.py", "--steps", _FOREVER, "--hidden", "512", "--batch-size", "256")
    ),
    Program(
        "transformer",
        (
            "nanogpt/train.py",
            "nanogpt/config/tiny.py",
            f"--steps={_FOREVER}",
            "--eval_interval=1000000",
            "--gradient_accumulation_steps=1",
        ),
    ),
    Program("graph", ("gcn.py", "--steps", _FOREVER, "--patience", _FOREVER)),
    Program("gan", ("dcgan.py", "--niter", _FOREVER)),
    Program("vae", ("vae.py", "--epochs", _FOREVER)),
)
