"""Which operations are known to give the same for the same arguments."""

from __future__ import annotations

import torch

from hotloop.probe.instruments.value_numbers import ValueNumbers

ATTENTION = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default


def test_attention_without_dropout_is_the_same_again() -> None:
    values = ValueNumbers()
    query, key, value = (torch.zeros(1, 2, 4, 8) for _ in range(3))
    out = torch.zeros(1, 2, 4, 8)
    assert not values.computed(values.key(ATTENTION, (query, key, value), {}), out, 0).in_step
    assert values.computed(values.key(ATTENTION, (query, key, value, 0.0), {}), out, 1).in_step is False
    again = values.key(ATTENTION, (query, key, value), {})
    assert again is not None
    assert values.computed(again, out, 2).in_step


def test_attention_that_drops_weights_is_not() -> None:
    values = ValueNumbers()
    given = tuple(torch.zeros(1, 2, 4, 8) for _ in range(3))
    assert values.key(ATTENTION, (*given, 0.1), {}) is None
    assert values.key(ATTENTION, given, {"dropout_p": 0.1}) is None
    assert values.key(torch.ops.aten.rand.default, ([2],), {}) is None
