"""Hugging Face Trainer: everything is a keyword of TrainingArguments, or the same word on the command line."""

from collections.abc import Mapping
from typing import Any

from hotloop.integrations.framework import Framework, Keywords
from hotloop.model.sites import SiteKind, Sites
from hotloop.source.outcome import CannotEdit

ADAMW = "torch.optim.adamw.AdamW"
"""The one optimizer of torch that the Trainer has under two names, fused and not."""

_TRL = ("SFT", "DPO", "GRPO", "KTO", "Reward")
"""Trainers of trl whose configuration is a TrainingArguments."""


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


_OF_LOADERS: Mapping[str, Keywords] = {
    "loader_workers": _workers,
    "loader_prefetch": _workers,
    "persistent_workers": lambda _: {"dataloader_persistent_workers": "True"},
    "pinned_memory": lambda _: {"dataloader_pin_memory": "True"},
}


def _makes_loaders(_: Mapping[str, Any], sites: Sites) -> bool:
    """Return whether the Trainer makes what feeds the steps; a program may have a `get_train_dataloader` of its own."""
    return not any(
        site.direct or any(place.function.endswith("get_train_dataloader") for place in site.places)
        for site in sites.of(SiteKind.LOADER)
        if site.in_step
    )


def _compiles_so(params: Mapping[str, Any], _: Sites) -> bool:
    """Return whether the Trainer can compile as the plan does; it knows neither blocks nor dynamic shapes."""
    return params.keys() <= {"mode"}


def _optimizer(params: Mapping[str, Any]) -> dict[str, str]:
    """Return the Trainer's name of AdamW's implementation."""
    return {"optim": '"adamw_torch"' if params.get("implementation") == "foreach" else '"adamw_torch_fused"'}


def _makes_adamw(params: Mapping[str, Any], sites: Sites) -> bool:
    """Return whether the Trainer makes the optimizer; a program may hand it its own.

    Raises:
        CannotEdit: `optim` would put AdamW in the place of another optimizer.
    """
    optimizers = sites.of(SiteKind.OPTIMIZER)
    if not optimizers:
        raise CannotEdit("the observed run does not show which optimizer the Trainer makes")
    made = [site for site in optimizers if not site.direct]
    for site in made:
        if site.callee != ADAMW:
            raise CannotEdit(f"the Trainer makes {site.callee}, and only torch's AdamW has a name for this")
    if made and params.get("implementation") == "foreach" and sites.device != "cuda":
        raise CannotEdit(
            f"the Trainer's AdamW takes no foreach, which is torch's default on CUDA and not on {sites.device}"
        )
    return bool(made)


TRANSFORMERS = Framework(
    name="the Hugging Face Trainer",
    classes=frozenset(
        {
            "transformers.TrainingArguments",
            "transformers.Seq2SeqTrainingArguments",
            "transformers.training_args.TrainingArguments",
            *(f"trl.{name}Config" for name in _TRL),
        }
    ),
    parsers=frozenset({"transformers.HfArgumentParser"}),
    knobs={
        "autocast_bf16": lambda _: {"bf16": "True"},
        "autocast_fp16": lambda _: {"fp16": "True"},
        **_OF_LOADERS,
        "compile": _compile,
        "fused_optimizer": _optimizer,
    },
    checks={
        **dict.fromkeys(_OF_LOADERS, _makes_loaders),
        "compile": _compiles_so,
        "fused_optimizer": _makes_adamw,
    },
    on_cpu={"autocast_bf16": "use_cpu"},
)
