"""The peak of tensors on the host, on a program whose allocations are known."""

from __future__ import annotations

import torch

from hotloop.probe.instruments.tensor_peak import TensorPeak, live_bytes, peak_before
from hotloop.probe.probe import Probe

MIB = 1 << 20


def test_the_peak_is_that_of_the_steps_after_the_first_whatever_was_there_before(probe: Probe) -> None:
    kept = torch.ones(8 * MIB // 4)
    old = torch.ones(16 * MIB // 4)
    counter = TensorPeak(probe)
    counter.start()
    for _ in range(3):
        old = torch.ones(4 * MIB // 4)  # as gradients: the last step's are released in this one
        temporary = torch.ones(2 * MIB // 4)
        del temporary
        counter.step()
    told = counter.stop()
    assert told["held_bytes"] - told["held_bytes"] % MIB >= 12 * MIB
    # The new one is there before the old one goes.
    assert told["peak_bytes"] - told["held_bytes"] == 4 * MIB
    assert kept.numel() * 4 + old.numel() * 4 <= told["held_bytes"]


def test_what_several_tensors_share_counts_once() -> None:
    before = live_bytes()
    whole = torch.zeros(MIB)
    parts = [whole[:10], whole[10:], whole.view(-1, 16)]
    assert live_bytes() - before == 4 * MIB
    assert len(parts) == 3


def test_gradients_that_nobody_has_asked_for_count() -> None:
    before = live_bytes()
    weight = torch.nn.Parameter(torch.zeros(MIB))
    weight.sum().backward()
    assert live_bytes() - before == 8 * MIB


def test_the_sum_is_anchored_at_its_end() -> None:
    changes = [(1, 100), (2, -30), (10, 50), (11, -50), (12, 5)]
    assert peak_before(changes, held=205, since=9) == 250
    assert peak_before(changes, held=205, since=12) == 205
