"""Observations with an account of their peak: one for each rule that reads it."""

from __future__ import annotations

from typing import Any

import msgspec

from hotloop.model.memory_account import HeldLine, HeldTensor, PeakAccount, StepPeak
from hotloop.model.memory_plan import Held
from hotloop.model.observation import Memory, Observation
from tests.diagnose.observations import observed

GIB = 1 << 30


def line(operator: str, held_bytes: int, **more: Any) -> HeldLine:
    """Return a line of the program that holds so much."""
    return HeldLine(
        path="train.py", line=12, function="step", operator=operator, held_bytes=held_bytes,
        shape=(4096, 50000), dtype="float32", **more,
    )  # fmt: skip


def account(phase: str, by_class: dict[str, int], **more: Any) -> PeakAccount:
    """Return an account whose peak is in a phase; the next highest phase has half of it."""
    peak = sum(by_class.values())
    other = "backward" if phase != "backward" else "forward"
    fields: dict[str, Any] = {
        "device": "cpu",
        "reached_by": line("aten.mm.default", by_class.get("temporaries", 0)),
        "phases": {
            phase: StepPeak(peak_bytes=peak, by_class=by_class),
            other: StepPeak(peak_bytes=peak // 2, by_class={}),
        },
    }
    return PeakAccount(
        peak_bytes=peak, low_bytes=peak, high_bytes=peak, num_steps=2, phase=phase,
        held=Held(by_class=by_class), **(fields | more),
    )  # fmt: skip


def with_account(found: PeakAccount) -> Observation:
    """Return an observation with it."""
    return observed(memory=Memory(peak_bytes=GIB, device="cpu", method="", account=found))


CASES = {
    "activations-dominate": with_account(
        account(
            "backward",
            {"activations": 6 * GIB, "parameters": GIB},
            activations=(line("aten.gelu.default", 4 * GIB),),
        )
    ),
    "optimizer-state-dominates": with_account(
        account("optimizer", {"optimizer_state": 4 * GIB, "parameters": 2 * GIB, "gradients": 2 * GIB})
    ),
    "loss-makes-peak": with_account(
        account(
            "backward",
            {"temporaries": 4 * GIB, "activations": 2 * GIB, "parameters": 2 * GIB},
            reached_by=line("_log_softmax_backward_data.default", 2 * GIB, in_backward=True),
            lines=(line("_log_softmax_backward_data.default", 4 * GIB, in_backward=True),),
        )
    ),
    "optimizer-step-makes-peak": with_account(
        account("optimizer", {"parameters": 2 * GIB, "temporaries": 2 * GIB, "optimizer_state": 2 * GIB})
    ),
    "gradients-held-in-forward": with_account(
        account("forward", {"parameters": 2 * GIB, "gradients": 2 * GIB, "activations": GIB})
    ),
    "data-held-on-device": with_account(
        account(
            "backward",
            {"other": 4 * GIB, "activations": 2 * GIB},
            device="cuda:0",
            others=(HeldTensor(held_bytes=4 * GIB, shape=(50000, 3, 32, 32), dtype="float32", keeps_graph=False),),
        )
    ),
}  # fmt: skip
"""For each code a program that has the pattern."""

SILENT = {
    "activations-dominate": with_account(
        account("backward", {"activations": 3 * GIB, "parameters": 4 * GIB})
    ),
    "optimizer-state-dominates": with_account(
        account("backward", {"optimizer_state": 2 * GIB, "activations": 3 * GIB})
    ),
    "loss-makes-peak": with_account(account("backward", {"temporaries": 4 * GIB, "parameters": GIB})),
    "optimizer-step-makes-peak": with_account(
        account("optimizer", {"parameters": 2 * GIB, "optimizer_state": 4 * GIB})
    ),
    "gradients-held-in-forward": msgspec.structs.replace(
        CASES["gradients-held-in-forward"],
        step=msgspec.structs.replace(
            observed().step,
            rhythm=("4x(data forward backward)", "optimizer"),  # type: ignore[type-var]
        ),
    ),
    "data-held-on-device": with_account(account("backward", {"other": 4 * GIB, "activations": 2 * GIB})),
}
"""For each code a program that comes near, and does not have it."""
