"""Changes that take less memory, by what holds it: exact ones first, each with the most that it can save."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from hotloop.model.memory_account import HeldLine, HeldTensor
from hotloop.model.optimization import Numerics
from hotloop.model.out_of_memory import Holder, Remedy
from hotloop.observe.profile.function_calls import calls_softmax

MIN_SHARE = 0.03
"""Of all that is held: less is within the account's own error, and helps nobody."""
LOSSES = ("log_softmax", "nll_loss", "cross_entropy", "logsumexp")
SCORES = (
    "bmm",
    "matmul",
    "softmax",
    "add",
    "div",
    "mul",
    "masked_fill",
    "where",
    "dropout",
    "clone",
    "_to_copy",
)
"""Operators that make matrices of scores, and what is done to them; square are kernels of convolutions, too."""
FIXED = ("tuple", "ndarray")
"""Kinds of holders whose number of entries does not change."""
_ORDER = (Numerics.EXACT, Numerics.TOLERANCE, Numerics.SEMANTIC)


class HeldMemory(msgspec.Struct, frozen=True, kw_only=True):
    """What is held at a moment.

    Attributes:
        by_class: bytes by class.
        lines: the lines that hold most.
        others: tensors of no model and no optimizer.
        phase: of the step at that moment; None: not known.
        device: whose memory.
        asked: the request that failed: it grows and shrinks with the batch as what is held does; None: not known.
        holders: what names of the program hold, beside models.
        slack_bytes: what the allocator of a device has reserved and does not use.
        num_samples: of the batch; None: not known.
        on_rocm: the device is AMD's, whose allocator has no segments that grow.
    """

    by_class: Mapping[str, int]
    lines: Sequence[HeldLine] = ()
    others: Sequence[HeldTensor] = ()
    phase: str | None = None
    device: str = "cpu"
    asked: HeldLine | None = None
    holders: Sequence[Holder] = ()
    slack_bytes: int = 0
    num_samples: int | None = None
    on_rocm: bool = False

    @property
    def asked_bytes(self) -> int:
        """What the failing operation asked for, where that grows with the batch; 0: it does not, or it is not known.

        The gradient of a parameter is made in a phase of its own (`parameter gradients`): its size is the model's.
        """
        computes = self.phase in ("forward", "backward", "evaluation")
        return self.asked.held_bytes if self.asked is not None and computes else 0

    @property
    def all_lines(self) -> list[HeldLine]:
        """The lines, and the one that asked."""
        return [*self.lines, *([self.asked] if self.asked is not None else [])]

    @property
    def total(self) -> int:
        """All of it."""
        return sum(self.by_class.values())

    def of(self, name: str) -> int:
        """Return the bytes of a class."""
        return self.by_class.get(name, 0)


def remedies(held: HeldMemory, missing: tuple[int, int] | None = None) -> tuple[Remedy, ...]:
    """Return the changes, exact ones first, of equal ones the larger first.

    Args:
        held: what is held.
        missing: what would have to be free for the program to go on, at least and at most; None: not known.
    """
    least = MIN_SHARE * held.total
    found = [each for each in _all(held) if each.saved_bytes is None or each.saved_bytes >= least]
    found.sort(key=lambda each: (_ORDER.index(each.numerics), -(each.saved_bytes or 0)))
    return tuple(msgspec.structs.replace(each, enough=_enough(each, missing)) for each in found)


def _enough(remedy: Remedy, missing: tuple[int, int] | None) -> bool | None:
    if missing is None or remedy.saved_bytes is None:
        return None
    least, most = missing
    if remedy.saved_bytes >= most:
        return True
    return False if remedy.saved_bytes < least else None


def loss_lines(lines: Sequence[HeldLine]) -> list[HeldLine]:
    """Return the lines whose tensors a loss over classes made: log-probabilities, and gradients of logits."""
    return [each for each in lines if any(word in each.operator for word in LOSSES)]


def _all(held: HeldMemory) -> Iterator[Remedy]:
    yield from _graphs(held)
    yield from _saved_activations(held)
    yield from _loss(held)
    yield from _attention(held)
    yield from _kept(held)
    yield from _fragments(held)
    yield from _gradients(held)
    yield from _optimizer(held)
    yield from _inputs(held)


def _graphs(held: HeldMemory) -> Iterator[Remedy]:
    kept = [each for each in held.others if each.keeps_graph]
    keeper = _keeper(held)
    if held.of("earlier_steps"):
        yield Remedy(
            change="keep numbers or detached tensors of past steps: loss.item(), output.detach()",
            numerics=Numerics.EXACT,
            saved_bytes=held.of("earlier_steps"),
            basis=f"what forwards of earlier steps made and graphs still hold{keeper}",
        )
    elif kept:
        yield Remedy(
            change="keep numbers or detached tensors of past steps: loss.item(), output.detach()",
            numerics=Numerics.EXACT,
            saved_bytes=sum(each.held_bytes for each in kept),
            basis=f"tensors with a graph that outlive their step, without what their graphs keep{keeper}",
        )
    others = sum(each.held_bytes for each in held.others if not each.keeps_graph)
    if others and held.device != "cpu":
        yield Remedy(
            change="keep the data on the host, in pinned memory, and copy one batch at a time",
            numerics=Numerics.EXACT,
            saved_bytes=others,
            basis="tensors on the device that belong to no model and no optimizer",
            optimization="pinned_memory",
        )


def _saved_activations(held: HeldMemory) -> Iterator[Remedy]:
    saved = held.of("activations")
    if not saved or held.of("earlier_steps") > saved:
        return  # what piles up fills any memory that a smaller step leaves
    keeper = _keeper(held)
    if held.phase == "evaluation":
        yield Remedy(
            change="evaluate under torch.no_grad()", numerics=Numerics.EXACT, saved_bytes=saved,
            basis=f"activations kept for a backward that does not come{keeper}", optimization="no_grad_evaluation",
        )  # fmt: skip
        return
    within = saved - sum(each.held_bytes for each in loss_lines(held.lines)) - _of_block_under_way(held)
    yield Remedy(
        change="recompute the activations of blocks in the backward (torch.utils.checkpoint)",
        numerics=Numerics.EXACT,
        saved_bytes=max(0, within),
        basis="activations saved by the model; the input of each block stays",
        optimization="activation_checkpointing",
    )
    yield Remedy(
        change="autocast to bfloat16 around the forward",
        numerics=Numerics.TOLERANCE,
        saved_bytes=(saved + held.asked_bytes) // 2,
        basis="half of the saved activations; what is kept in fp32 (norms, losses) saves nothing",
        optimization="autocast_bf16",
    )
    batch = saved + held.of("inputs") + held.asked_bytes
    if held.num_samples == 1:
        return  # no half of it can be had
    yield Remedy(
        change="two micro-batches of half the size, their gradients added up",
        numerics=Numerics.TOLERANCE,
        saved_bytes=batch // 2,
        basis="half of activations and inputs",
        optimization="gradient_accumulation",
    )
    yield Remedy(
        change="a smaller batch", numerics=Numerics.SEMANTIC, saved_bytes=batch // 2,
        basis="half of activations and inputs, at half the batch",
    )  # fmt: skip


def _of_block_under_way(held: HeldMemory) -> int:
    """Return what the function that asked has made for itself: its block holds that when it is recomputed, too."""
    asked = held.asked
    if asked is None:
        return 0
    own = (each for each in held.lines if (each.path, each.function) == (asked.path, asked.function))
    return sum(map(_one_bytes, own))


def _one_bytes(line: HeldLine) -> int:
    """Return the bytes of a line's largest tensor; 0: not known."""
    width = re.search(r"\d+", line.dtype)
    if line.shape is None or width is None:
        return 0
    return min(line.held_bytes, math.prod(line.shape) * int(width[0]) // 8)


def _loss(held: HeldMemory) -> Iterator[Remedy]:
    lines = loss_lines(held.all_lines) if held.phase != "evaluation" else []
    num_bytes = sum(each.held_bytes for each in lines)
    if num_bytes:
        yield Remedy(
            change="compute the loss over slices of the batch, each under torch.utils.checkpoint",
            numerics=Numerics.EXACT,
            saved_bytes=num_bytes,
            basis=f"log-probabilities and gradients of the logits, made at {_place(lines[0])}",
            optimization="chunked_cross_entropy",
        )


def _attention(held: HeldMemory) -> Iterator[Remedy]:
    """Matrices of scores: square in their last two dimensions, and a softmax of them was made or is to come."""
    scores = [each for each in held.all_lines if _is_square(each) or _is_softmax(each)]
    square = [each for each in scores if _is_square(each)]
    if square and (any(map(_is_softmax, scores)) or any(map(_is_before_softmax, square))):
        asked = held.asked
        if asked is not None and asked not in scores and asked.held_bytes in map(_one_bytes, square):
            scores.append(asked)
        yield Remedy(
            change="torch.nn.functional.scaled_dot_product_attention in place of the formula",
            numerics=Numerics.TOLERANCE,
            saved_bytes=sum(each.held_bytes for each in scores),
            basis=f"matrices of scores, made at {_place(scores[0])}",
            optimization="flash_attention",
        )


def _is_softmax(line: HeldLine) -> bool:
    return "_softmax" in line.operator and "log_softmax" not in line.operator


def _is_before_softmax(line: HeldLine) -> bool:
    return "bmm" in line.operator and calls_softmax(line.path, line.line)


def _is_square(line: HeldLine) -> bool:
    shape = line.shape or ()
    return len(shape) >= 3 and shape[-1] == shape[-2] and any(name in line.operator for name in SCORES)


def _kept(held: HeldMemory) -> Iterator[Remedy]:
    for one in held.holders:
        if one.num is not None and one.kind not in FIXED and not one.keeps_graph:
            yield Remedy(
                change=f"keep fewer entries in {one.name}: numbers instead of tensors and arrays, or a bound",
                numerics=Numerics.EXACT,
                saved_bytes=round(one.held_bytes),
                basis=f"what {one.name} ({_at(one)}) holds",
            )


def _fragments(held: HeldMemory) -> Iterator[Remedy]:
    if held.slack_bytes and held.device != "cpu" and not held.on_rocm:
        yield Remedy(
            change="PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
            numerics=Numerics.EXACT,
            saved_bytes=held.slack_bytes,
            basis="what the allocator reserved and does not use",
            optimization="allocator_settings",
        )


def _keeper(held: HeldMemory) -> str:
    """Say which name keeps graphs; empty: none is known."""
    return next((f", kept by {one.name} ({_at(one)})" for one in held.holders if one.keeps_graph), "")


def _at(one: Holder) -> str:
    return f"{one.path.rpartition('/')[2]}:{one.line}" if one.line else one.function


def _gradients(held: HeldMemory) -> Iterator[Remedy]:
    asked = held.asked
    if asked is not None and "embedding_dense_backward" in asked.operator:
        yield Remedy(
            change="nn.Embedding(..., sparse=True), with SGD, Adagrad or SparseAdam",
            numerics=Numerics.SEMANTIC,
            saved_bytes=asked.held_bytes,
            basis="the table's dense gradient that was asked for; momentum, weight decay and SparseAdam move only "
            "the rows that a step used, and a table with another use (a tied output layer) stays dense",
        )
    gradients = held.of("gradients")
    if gradients and held.phase == "forward":
        yield Remedy(
            change="zero_grad(set_to_none=True) before the forward, not after it",
            numerics=Numerics.EXACT,
            saved_bytes=gradients,
            basis="gradients of the step before, alive in the forward",
            optimization="zero_grad_none",
        )


def _optimizer(held: HeldMemory) -> Iterator[Remedy]:
    temporaries = held.of("temporaries")
    if held.phase == "optimizer" and temporaries:
        yield Remedy(
            change="fused=True in the optimizer (or foreach=False): it makes no lists of whole tensors",
            numerics=Numerics.EXACT,
            saved_bytes=temporaries,
            basis="temporaries of the optimizer's step",
            optimization="fused_optimizer",
        )
    state = held.of("optimizer_state")
    if state:
        yield Remedy(
            change="8-bit optimizer state (bitsandbytes, torchao)",
            numerics=Numerics.TOLERANCE,
            saved_bytes=3 * state // 4,
            basis="three quarters of the optimizer's state in fp32",
            optimization="optimizer_memory",
        )


def _inputs(held: HeldMemory) -> Iterator[Remedy]:
    inputs = held.of("inputs")
    if inputs:
        yield Remedy(
            change="smaller batches, and fewer of them made ahead (prefetch_factor)",
            numerics=Numerics.SEMANTIC,
            saved_bytes=inputs // 2,
            basis="half of what batches hold",
        )


def _place(line: HeldLine) -> str:
    return f"{line.path.rpartition('/')[2]}:{line.line}"
