"""The source edit of activation_checkpointing."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from hotloop.model.sites import SiteKind, Sites
from hotloop.optimize.rewriting.model import add_loop, named_model
from hotloop.optimize.rewriting.outcomes import not_observed, summed_up
from hotloop.source.calls import code
from hotloop.source.draft import Editor
from hotloop.source.imports import module_name
from hotloop.source.outcome import Refused, Rewrite

_BY_HAND = (
    "x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)  # where forward calls block(x)"
)


def rewrite_blocks(source: Editor, sites: Sites, wanted: str | float | Sequence[str]) -> Rewrite:
    """Put each entry of the containers under checkpoint.

    Args:
        source: the user's files.
        sites: of the observed run.
        wanted: `all`, a share, or paths of containers.

    Raises:
        CannotEdit: the model gets no name that can be told from the source.
    """
    if isinstance(wanted, str | float):
        return Refused(
            f"blocks={wanted} is chosen while the program runs; batch norm would update its statistics twice",
            _BY_HAND,
        )
    if any(path.rpartition(".")[2].isdigit() for path in wanted):
        return Refused("the plan names single blocks", _BY_HAND)
    if any(_is_batch_norm(call) for file in source.draft.files.values() for call in file.all(cst.Call)):
        return Refused("the program calls batch_norm, which would update its statistics twice", _BY_HAND)
    models = sites.of(SiteKind.MODEL)
    if len(models) != 1:
        return not_observed("construction of one model", _BY_HAND)
    model = named_model(source, models[0])
    functools = module_name(source, model.place.path, "functools")
    checkpoint = module_name(source, model.place.path, "torch.utils.checkpoint")
    line = f"block.forward = {functools}.partial({checkpoint}.checkpoint, block.forward, use_reentrant=False)"
    notes: list[str] = []
    for path in wanted:
        notes += add_loop(source, model, f"{model.name}{_written(path.removeprefix('module.'))}", line)
    return summed_up(notes, "the blocks are under checkpoint already")


def _is_batch_norm(call: cst.Call) -> bool:
    return code(call.func).rpartition(".")[2] == "batch_norm"


def _written(path: str) -> str:
    """`body.0.layers` as it is written behind the model's name."""
    return "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in path.split("."))
