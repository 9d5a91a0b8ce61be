"""Sharded, offloaded and 8-bit configurations, on a hand-made account."""

from __future__ import annotations

from typing import Any

import pytest

from hotloop.memory.computed import computed_configurations
from hotloop.probe.virtual_gpu.computed import Computed
from hotloop.probe.virtual_gpu.replay import alive_at, replay
from hotloop.probe.virtual_gpu.storages import Record

MIB = 1 << 20
CLASSES = ("parameters", "optimizer_state", "activations", "gradients", "temporaries")
PHASES = ("start", "optimizer", "forward", "backward", "optimizer")
SIZES = (64, 128, 32, 64, 64)
KEPT = [0, 1]
EVENTS = [(2, 32 * MIB), (3, 64 * MIB), (2, -32 * MIB), (4, 64 * MIB), (4, -64 * MIB), (3, -64 * MIB)]


def peak_of(name: str, groups: tuple[int, int, int] = (0, 8 * MIB, 8 * MIB)) -> float:
    """Return MiB at the peak of one of the configurations that the plan has."""
    order: Any = next(each for each in computed_configurations("bf16 + checkpointing") if each.name == name)
    records = [
        Record(size * MIB, "", phase, "", None, itemsize=4) for size, phase in zip(SIZES, PHASES, strict=True)
    ]
    fields = {field: getattr(order, field) for field in order.__struct_fields__}
    sequences = Computed(fields, records, lambda number: CLASSES[number], groups).sequences(KEPT, EVENTS)
    return replay(*sequences, 0).allocated / MIB


def test_as_it_is_the_step_of_the_optimizer_is_the_peak() -> None:
    kept = [(number, SIZES[number] * MIB) for number in KEPT]
    peaks = replay(kept, EVENTS, 0)
    assert peaks.allocated == (64 + 128 + 64 + 64) * MIB
    assert set(alive_at(kept, EVENTS, peaks.at)) == {0, 1, 3, 4}


def test_states_of_eight_bits_are_a_quarter_and_the_step_has_no_temporaries() -> None:
    assert peak_of("8-bit optimizer") == 64 + 32 * (1 + 4 / 256) + 32 + 64


def test_offloaded_states_are_not_on_the_device() -> None:
    assert peak_of("optimizer offloaded") == 64 + 32 + 64


def test_ddp_holds_gradients_once_more() -> None:
    assert peak_of("DDP") - (64 + 128 + 64 + 64) == pytest.approx(64, abs=2)  # what is left of a segment


def test_zero_divides_by_stage() -> None:
    assert peak_of("ZeRO-2 over 8") == 64 + 128 / 8 + 32 + 64 / 8
    assert peak_of("FSDP2 (ZeRO-3) over 8") == (64 + 128 + 64) / 8 + 32 + 2 * 8 + 8
    assert peak_of("FSDP2 (ZeRO-3) over 2") > peak_of("FSDP2 (ZeRO-3) over 4")


def test_a_model_without_blocks_is_gathered_whole() -> None:
    assert (
        peak_of("FSDP2 (ZeRO-3) over 8", groups=(64 * MIB, 0, 64 * MIB)) == (64 + 128 + 64) / 8 + 32 + 64 + 64
    )


def test_gradients_of_a_block_are_those_of_what_is_trained_in_it() -> None:
    groups = (0, 8 * MIB, 1 * MIB)
    assert peak_of("FSDP2 (ZeRO-3) over 8", groups) == (64 + 128 + 64) / 8 + 32 + 2 * 8 + 1
