"""Not a phase of the step: what libraries do between steps, by name, patched as the program imports them.

Checkpoints and trackers only; what a library is not installed for, or does not have any more, is left out.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from hotloop.probe.frameless import Timed
from hotloop.probe.probe import Probe
from hotloop.probe.record.events import Kind
from hotloop.probe.run_events.imports import Waiting
from hotloop.probe.sections import section

CALLS: dict[str, tuple[tuple[str, Kind], ...]] = {
    "safetensors.torch": (("save_file", Kind.SAVE), ("save_model", Kind.SAVE)),
    "torch.distributed.checkpoint.state_dict_saver": (("_save_state_dict", Kind.SAVE),),
    "torch.utils.tensorboard.writer": (
        ("FileWriter.add_event", Kind.LOG),
        ("SummaryWriter.add_scalar", Kind.LOG),
        ("SummaryWriter.add_scalars", Kind.LOG),
        ("SummaryWriter.add_histogram", Kind.LOG),
        ("SummaryWriter.add_image", Kind.LOG),
        ("SummaryWriter.flush", Kind.LOG),
    ),
    "tqdm.std": (("tqdm.display", Kind.LOG),),
    "wandb.sdk.wandb_run": (("Run.log", Kind.LOG),),
    "transformers.trainer": (("Trainer.log", Kind.LOG), ("Trainer._save_checkpoint", Kind.SAVE)),
    "accelerate.accelerator": (
        ("Accelerator.log", Kind.LOG),
        ("Accelerator.save_state", Kind.SAVE),
        ("Accelerator.save_model", Kind.SAVE),
    ),
    **{
        f"{package}.{name}": calls
        for package in ("lightning.pytorch", "pytorch_lightning")
        for name, calls in (
            ("trainer.trainer", (("Trainer.save_checkpoint", Kind.SAVE),)),
            (
                "trainer.connectors.logger_connector.logger_connector",
                (("_LoggerConnector.log_metrics", Kind.LOG),),
            ),
        )
    },
}
"""Module to the functions and methods in it that save or log."""


def waiting(probe: Probe) -> Waiting:
    """Return what is to be done when each library has been imported."""
    return {name: functools.partial(_patch_all, probe, calls) for name, calls in CALLS.items()}


def _patch_all(probe: Probe, calls: tuple[tuple[str, Kind], ...], module: ModuleType) -> None:
    for path, kind in calls:
        *outer, name = path.split(".")
        owner: Any = module
        for part in outer:
            owner = getattr(owner, part, None)
        original = vars(owner).get(name) if owner is not None else None
        if callable(original):
            setattr(owner, name, Timed(original, section(probe, kind, aside=True)))
