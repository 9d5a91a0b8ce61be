"""Memory that is put aside: it costs none, and it is there when it is needed."""

from __future__ import annotations

from hotloop.probe.memory_failure.reserve import RESERVE_BYTES, Reserve
from hotloop.probe.memory_failure.room import host_room


def test_what_is_put_aside_takes_no_page_and_can_be_taken_again() -> None:
    before = host_room()["resident_bytes"]
    reserve = Reserve()
    assert host_room()["resident_bytes"] - before < RESERVE_BYTES / 8
    for _ in range(2):
        reserve.give_back()
        assert reserve._held is None
        reserve.take()
        assert reserve._held is not None
    reserve.give_back()
