"""One program of each kind that people train, made to go on until it is stopped, and what a person would do to it.

The plans by hand are those of a careful engineer on a CPU: by reading the program and a few timings, without hotloop.
Half precision is among them where there is arithmetic to save; on a CPU without bf16 it comes last.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from benchmarks.tune.tuned import ByHand

PROGRAMS = Path(__file__).parents[2] / "tests" / "programs"
_THREADS = ByHand("thread_count", {"num_threads": 1})
_FUSED = ByHand("fused_optimizer")
_WORKERS = ByHand("loader_workers", {"num_workers": 2, "persistent_workers": True})
_COMPILE = ByHand("compile", {"mode": "default"})
_IN_MEMORY = ByHand("dataset_in_memory")
_MALLOC = ByHand("cpu_allocator", {"allocator": "glibc"})
_CHANNELS_LAST = ByHand("channels_last")
_CHANNELS_LAST_3D = ByHand("channels_last_3d")
_BF16 = ByHand("autocast_bf16")


class Program(msgspec.Struct, frozen=True):
    """A program, and plans that somebody may come to by hand; the fastest of them counts."""

    name: str
    kind: str
    words: tuple[str, ...]
    """Its command behind `python`; what ends in .py lies in tests/programs."""
    by_hand: tuple[tuple[ByHand, ...], ...]

    @property
    def arguments(self) -> tuple[str, ...]:
        """The command's words with their paths whole."""
        return tuple(str(PROGRAMS / word) if word.endswith(".py") else word for word in self.words)


ALL = (
    Program(
        "jpeg_images", "vision", ("jpeg_images.py", "--epochs", "100000"),
        ((_WORKERS, _THREADS), (_IN_MEMORY, _FUSED), (_IN_MEMORY, _BF16)),
    ),
    Program(
        "unet3d", "3d vision", ("unet3d.py", "--epochs", "100000"),
        ((_CHANNELS_LAST_3D, _MALLOC), (_MALLOC,), (_CHANNELS_LAST_3D, _MALLOC, _BF16)),
    ),
    Program(
        "nanogpt", "language",
        ("nanogpt/train.py", "nanogpt/config/tiny.py", "--steps=1000000", "--eval_interval=2000"),
        ((_FUSED, _COMPILE), (_FUSED, _THREADS), (_FUSED, _COMPILE, _BF16)),
    ),
    Program(
        "tabular_adult", "tabular", ("tabular_adult.py", "--epochs", "100000"),
        ((_IN_MEMORY, _FUSED), (_WORKERS, _FUSED)),
    ),
    Program(
        "sparse_embedding", "recommendation", ("sparse_embedding.py", "--steps", "100000000"),
        ((_THREADS,), (_THREADS, _MALLOC)),
    ),
    Program(
        "dcgan", "GAN", ("dcgan.py", "--niter", "100000"),
        ((_CHANNELS_LAST, _FUSED), (_FUSED, _MALLOC), (_CHANNELS_LAST, _FUSED, _BF16)),
    ),
    Program(
        "vae", "VAE", ("vae.py", "--epochs", "100000"),
        ((_IN_MEMORY, _FUSED), (_FUSED, _THREADS), (_IN_MEMORY, _FUSED, _BF16)),
    ),
    Program("gcn", "graph", ("gcn.py", "--epochs", "10000000"), ((_FUSED,), (_FUSED, _THREADS))),
    Program(
        "audio_keywords", "1d audio", ("audio_keywords.py", "--epochs", "100000"),
        ((_WORKERS, _FUSED), (_THREADS, _FUSED), (_FUSED, _BF16)),
    ),
    Program(
        "ppo", "reinforcement learning", ("ppo.py", "--iterations", "10000000"), ((_THREADS, _FUSED), (_THREADS,))
    ),
    Program(
        "forecast_patches", "time series", ("forecast_patches.py", "--train_epochs", "100000", "--patience", "100000"),
        ((_IN_MEMORY, _FUSED), (ByHand("flash_attention"), _FUSED), (_IN_MEMORY, _FUSED, _BF16)),
    ),
    Program(
        "hf_generate", "inference of a small language model", ("hf_generate.py", "--prompts", "100000000"),
        ((_THREADS,), (_MALLOC,)),
    ),
)  # fmt: skip
