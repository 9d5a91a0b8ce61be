"""Which answer a question needs, by what the function that asks does with it.

PYTEST_DONT_REWRITE: the assertions of the functions below are to be as Python compiles them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import pytest

from hotloop.probe.virtual_gpu.checks import answer_at


class Unknown:
    """A value that notes what it should have been."""

    def __init__(self) -> None:
        self.needed: bool | None = None

    def __bool__(self) -> bool:
        frame = sys._getframe(1)
        self.needed = answer_at(frame.f_code, frame.f_lasti)
        return bool(self.needed)

    def item(self) -> bool:
        frame = sys._getframe(1)
        self.needed = answer_at(frame.f_code, frame.f_lasti)
        return bool(self.needed)


def asserted(value: Unknown) -> None:
    assert value, f"not {math.pi:.2f}"


def asserted_not(value: Unknown) -> None:
    assert not value


def asserted_item(value: Unknown) -> None:
    assert value.item()


def asserted_with_others(value: Unknown) -> None:
    assert math.pi > 3 and value and math.e < 3  # noqa: PT018 - as programs write it


def raised_if(value: Unknown) -> None:
    if value:
        print("bad")
        raise ValueError(str(value))


def raised_if_not_item(value: Unknown) -> None:
    if not value.item():
        raise ValueError


def raised_else(value: Unknown) -> None:
    if value:
        print("good")
    else:
        raise ValueError


def raised_in_a_loop(value: Unknown) -> None:
    for _ in range(2):
        if math.pi > 3 and value:
            raise ValueError


def stopped(value: Unknown) -> None:
    for _ in range(2):
        if value:
            break
    else:
        raise ValueError


def solved(value: Unknown) -> int:
    if value:
        return 1
    return 2


def repeated(value: Unknown) -> None:
    while value:
        print("again")


def handed_on(value: Unknown) -> bool:
    return bool(value)


@pytest.mark.parametrize(
    ("asks", "needed"),
    [
        (asserted, True),
        (asserted_not, False),
        (asserted_item, True),
        (asserted_with_others, True),
        (raised_if, False),
        (raised_if_not_item, True),
        (raised_else, True),
        (raised_in_a_loop, False),
        (solved, None),
        (repeated, None),
        (handed_on, None),
    ],
)
def test_a_check_is_passed(asks: Callable[[Unknown], object], needed: bool | None) -> None:
    value = Unknown()
    asks(value)
    assert value.needed is needed


def test_a_loop_that_ends_in_an_error_is_no_check() -> None:
    value = Unknown()
    with pytest.raises(ValueError, match=r"^$"):
        stopped(value)
    assert value.needed is None
