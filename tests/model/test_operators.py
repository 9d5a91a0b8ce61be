"""Operators by name."""

from __future__ import annotations

from hotloop.model.operators import largest_shares

from ..diagnose.watched_cases import operator


def test_an_operator_is_named_once_whatever_its_shapes() -> None:
    found = [operator("aten::relu", 0.2), operator("aten::gelu", 0.25), operator("aten::relu", 0.11)]
    assert largest_shares(found) == "relu 31%, gelu 25%"
    assert largest_shares(found, 1) == "relu 31%"
