"""What happens in passing is told beside what goes on."""

from __future__ import annotations

from hotloop.tune.session.stage import Stage


def test_what_happens_in_passing_does_not_hide_what_goes_on() -> None:
    said: list[str] = []
    stage = Stage(said.append)
    stage.passing("starting")
    stage.begin("comparing side by side: a, b")
    stage.passing("block 2 of at most 9")
    stage.begin(
        "compare fused_optimizer, channels_last, cpu_allocator and 9 more beside autocast_bf16: may bring 1.2x"
    )
    stage.passing("block 1 of at most 9")
    assert said == [
        "starting",
        "comparing side by side: a, b",
        "block 2 of at most 9, comparing side by side",
        "compare fused_optimizer, channels_last, cpu_allocator and 9 more beside autocast_bf16: may bring 1.2x",
        "block 1 of at most 9, compare fused_optimizer, channels_last, ...",
    ]
