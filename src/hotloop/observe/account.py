"""Account for the wall time of the whole command, by part."""

from __future__ import annotations

from hotloop.model.observation import Anchor, Phase, RunAccount
from hotloop.observe.spans import Timeline
from hotloop.observe.windows import Window, boundaries, windows
from hotloop.probe.events import Kind


def account(timeline: Timeline | None, anchor: Anchor | None, begin_s: float, end_s: float) -> RunAccount:
    """Return where the command's wall time went, seen from its leading training process.

    Args:
        timeline: that process's records; None: nothing was recorded.
        anchor: what ends a step.
        begin_s: when the command was started, on the monotonic clock.
        end_s: when it ended or was ended.
    """
    wall = end_s - begin_s
    if timeline is None or timeline.torch_s is None:
        return RunAccount(wall_s=wall, parts={"unaccounted_s": wall})
    parts = {"import_s": max(0.0, timeline.torch_s - begin_s)}
    ends = boundaries(timeline, anchor) if anchor else []
    if not ends:
        parts["setup_s"] = max(0.0, end_s - timeline.torch_s)
        return _closed(wall, parts)
    first_begin = timeline.spans[0].begin_s
    first_end, last_end = timeline.spans[ends[0]].end_s, timeline.spans[ends[-1]].end_s
    parts["setup_s"] = max(0.0, first_begin - timeline.torch_s)
    parts["first_step_s"] = first_end - first_begin
    assert anchor is not None
    for window in windows(timeline, anchor):
        _add_window(parts, window)
    _add_tail(parts, timeline, last_end, end_s)
    return _closed(wall, parts)


def _add_window(parts: dict[str, float], window: Window) -> None:
    if window.regular:
        for phase, spent in window.phases.items():
            if spent > 0:
                _add(parts, f"step_{phase.value}_s", spent)
        return
    named = {
        "epoch_boundary_s": window.parts.get(Kind.ITERATOR, 0.0),
        "checkpoint_s": window.parts.get(Kind.SAVE, 0.0),
    }
    trained = sum(
        window.phases[phase]
        for phase in (Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER, Phase.TRANSFER, Phase.COMMUNICATION)
    )
    data = window.phases[Phase.DATA] - named["epoch_boundary_s"]
    evaluated = window.parts.get(Kind.EVALUATE, 0.0)
    rest = window.duration_s - sum(named.values()) - trained - data - evaluated
    if evaluated:
        # Loading and scoring around evaluation forwards belong to the evaluation.
        named["evaluation_s"] = evaluated + data + rest
    else:
        named["irregular_step_s"] = data + rest
    named["irregular_step_s"] = named.get("irregular_step_s", 0.0) + trained
    named["held_by_hotloop_s"] = window.end_s - window.begin_s - window.duration_s
    for name, spent in named.items():
        if spent > 0:
            _add(parts, name, spent)


def _add_tail(parts: dict[str, float], timeline: Timeline, last_end: float, end_s: float) -> None:
    """What came after the last step: evaluation, a last checkpoint, shut-down; or the wait to be ended."""
    tail = [span for span in timeline.spans if span.begin_s >= last_end]
    evaluation = [span for span in tail if span.kind is Kind.EVALUATE]
    saved = sum(span.exclusive_s for span in tail if span.kind is Kind.SAVE)
    evaluated = max((span.end_s for span in evaluation), default=last_end) - last_end
    if evaluated:
        _add(parts, "evaluation_s", max(0.0, evaluated - saved))
    if saved:
        _add(parts, "checkpoint_s", saved)
    _add(parts, "shutdown_s", max(0.0, end_s - last_end - evaluated - (0 if evaluated else saved)))


def _add(parts: dict[str, float], name: str, spent: float) -> None:
    parts[name] = parts.get(name, 0.0) + spent


def _closed(wall: float, parts: dict[str, float]) -> RunAccount:
    return RunAccount(wall_s=wall, parts={**parts, "unaccounted_s": wall - sum(parts.values())})
