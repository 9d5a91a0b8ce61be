"""Programs whose peak on a GPU somebody measured and published, and how to run them here."""

from __future__ import annotations

from pathlib import Path

import msgspec

GIB = 1 << 30
PROGRAMS = Path(__file__).with_name("programs")
SHARED = Path(__file__).parents[3] / "shared" / "memory"
"""Beside a checkout, where there is one: the same programs as others wrote them."""
VIT = "github.com/rasbt/pytorch-memory-optim, logs.md; max_memory_reserved / 1e9"
GPT = "github.com/rasbt/LLMs-from-scratch, ch05/10_llm-training-speed/README.md; memory_reserved / 1024^3"
AMP = "PyTorch recipe amp_recipe.py, printed by a reader (T4, torch 1.11); max_memory_allocated"
OPTIMUM = "huggingface.co/datasets/optimum-benchmark/rocm, cuda_training; max_allocated"


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A program with a published peak.

    Attributes:
        name: for the table.
        script: the program.
        arguments: of it.
        device: for the plan.
        kind: what was published: allocated or reserved.
        truth: in bytes.
        source: of the figure.
        unlike: what is known to differ from what was measured; None: nothing.
    """

    name: str
    script: Path
    arguments: tuple[str, ...] = ()
    device: str
    kind: str
    truth: float
    source: str
    unlike: str | None = None
    params_bytes: int = 4
    """Bytes of a parameter."""
    has_adam: bool = True
    look_s: float | None = None
    """Where its peak comes later than its third step: seconds of the program as it is."""


def _vit(name: str, truth_gb: float, *arguments: str, params_bytes: int = 4) -> Known:
    return Known(
        name=f"ViT-L/16, {name}",
        script=PROGRAMS / "vit.py",
        arguments=arguments,
        device="A100 40GB",
        kind="reserved",
        truth=truth_gb * 1e9,
        source=VIT,
        unlike="torch 2.1.0.dev of June 2023: its foreach Adam makes one list of temporaries more (`denom`), and its "
        "flash attention is version 1, whose output another copy follows",
        params_bytes=params_bytes,
    )


def _gpt(name: str, truth_gib: float, *arguments: str) -> Known:
    return Known(
        name=f"GPT-2 small, {name}",
        script=PROGRAMS / "gpt.py",
        arguments=arguments,
        device="A100 40GB",
        kind="reserved",
        truth=truth_gib * GIB,
        source=GPT,
        unlike="generation of text after an epoch is not rebuilt",
        params_bytes=2 if "--bf16" in arguments else 4,
    )


_OWN = ("--own", "--own-attention")
KNOWN = (
    Known(
        name="wide MLP, SGD, fp32",
        script=PROGRAMS / "amp_recipe.py",
        device="T4",
        kind="allocated",
        truth=1_350_681_600,
        source=AMP,
        unlike="torch 1.11 took cuBLAS's workspace outside the allocator",
        has_adam=False,
    ),
    Known(
        name="wide MLP, SGD, fp16 autocast",
        script=PROGRAMS / "amp_recipe.py",
        arguments=("--amp",),
        look_s=30.0,
        device="T4",
        kind="allocated",
        truth=1_577_232_384,
        source=AMP,
        unlike="torch 1.11 took cuBLAS's workspace outside the allocator",
        has_adam=False,
    ),
    _vit("Adam, fp32", 26.79),
    _vit("Adam, fp16 autocast", 18.21, "--precision", "16-mixed"),
    _vit("Adam, bf16", 13.82, "--precision", "bf16-true", params_bytes=2),
    _vit("Adam, bf16, batch 16", 5.69, "--precision", "bf16-true", "--batch", "16", params_bytes=2),
    _vit(
        "Adam, bf16, 4 x 4", 3.91, "--precision", "bf16-true", "--batch", "4", "--micro", "4", params_bytes=2
    ),
    _gpt("all by hand, fp32", 26.2617, *_OWN, "--kept-mask"),
    _gpt("mask on the fly", 26.2422, *_OWN),
    _gpt("fused AdamW", 26.2422, *_OWN, "--fused"),
    _gpt("bf16", 13.7871, *_OWN, "--fused", "--bf16"),
    _gpt("torch's norm and GELU", 11.5645, "--own-attention", "--fused", "--bf16"),
    _gpt("flash attention", 5.9004, "--fused", "--bf16"),
    *(
        Known(
            name=f"{name}, Trainer's AdamW",
            script=PROGRAMS / "transformer.py",
            arguments=("--model", model),
            device="MI250X",
            kind="allocated",
            truth=truth,
            source=OPTIMUM,
        )
        for name, model, truth in (
            ("BERT base", "bert", 2_195_345_408),
            ("GPT-2", "gpt2", 2_506.7e6),
            ("ViT base", "vit", 1_738.3e6),
        )
    ),
)
