"""Hugging Face Trainer: everything is a keyword of TrainingArguments, or the same word on the command line."""

from collections.abc import Mapping
from typing import Any

from hotloop.integrations.framework import Framework


def _workers(params: Mapping[str, Any]) -> dict[str, str]:
    """Return the loader's keywords; the Trainer makes its loaders itself."""
    names = {
        "num_workers": "dataloader_num_workers",
        "prefetch_factor": "dataloader_prefetch_factor",
        "persistent_workers": "dataloader_persistent_workers",
    }
    return {keyword: repr(params[name]) for name, keyword in names.items() if name in params}


def _compile(params: Mapping[str, Any]) -> dict[str, str]:
    mode = params.get("mode", "default")
    return {"torch_compile": "True", **({} if mode == "default" else {"torch_compile_mode": f'"{mode}"'})}


def _optimizer(params: Mapping[str, Any]) -> dict[str, str]:
    """Return the Trainer's name of the implementation; AdamW is its default, and the one that is fused."""
    return {"optim": '"adamw_torch"' if params.get("implementation") == "foreach" else '"adamw_torch_fused"'}


TRANSFORMERS = Framework(
    name="the Hugging Face Trainer",
    classes=frozenset({"transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments"}),
    parsers=frozenset({"transformers.HfArgumentParser"}),
    knobs={
        "autocast_bf16": lambda _: {"bf16": "True"},
        "autocast_fp16": lambda _: {"fp16": "True"},
        "loader_workers": _workers,
        "loader_prefetch": _workers,
        "persistent_workers": lambda _: {"dataloader_persistent_workers": "True"},
        "pinned_memory": lambda _: {"dataloader_pin_memory": "True"},
        "compile": _compile,
        "fused_optimizer": _optimizer,
    },
)
