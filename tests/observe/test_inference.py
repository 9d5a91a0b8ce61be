"""Programs that only evaluate or generate: what a step of theirs is, and what those who wait for it get."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.model.observation import Anchor
from hotloop.observe.steps.ranks import observe_rank, steady_windows
from hotloop.observe.steps.requests import inference
from hotloop.observe.steps.rhythm import find_anchor
from hotloop.probe.hook_points.requests import Requests
from hotloop.probe.record.events import Kind, end

from .conftest import Observe
from .synthetic import Script

REQUEST = Anchor("request", 0)


def generation(folder: Path, num: int = 9, tokens: int = 5) -> Script:
    """Prompts of two texts each: 10 ms to read them, 2 ms for each token after that, 3 ms between requests."""
    script = Script(folder)
    for _ in range(num):
        script.mark(end(Kind.REQUEST)).wait(0.01).size(2, 24).span(Kind.EVALUATE, 10)
        for _ in range(tokens - 1):
            script.wait(0.5).size(2, 2).span(Kind.EVALUATE, 2)
        script.wait(2.99)
    return script


def test_a_request_of_a_generation_is_a_step(tmp_path: Path) -> None:
    timeline = generation(tmp_path).timeline()
    assert find_anchor(timeline.spans) == REQUEST
    step = observe_rank(timeline, REQUEST, None, steady_windows(timeline, REQUEST)).step
    assert step is not None
    assert step.median_s == pytest.approx(23e-3)
    assert step.rhythm == ("5x(evaluate)",)
    assert step.samples_per_s == pytest.approx(2 / 23e-3)
    assert step.tokens_per_s == pytest.approx(10 / 23e-3), "those that are generated, not those that are read"


def test_latency_to_the_first_token_and_between_tokens(tmp_path: Path) -> None:
    timeline = generation(tmp_path).timeline()
    found = inference(timeline, REQUEST, steady_windows(timeline, REQUEST))
    assert found is not None
    assert found.first_token is not None
    assert found.between_tokens is not None
    assert found.requests_per_s == pytest.approx(1 / 23e-3)
    assert found.latency.p99_s == pytest.approx(20e-3), "what lies between requests is nobody's latency"
    assert found.first_token.p50_s == pytest.approx(10e-3)
    assert found.between_tokens.p95_s == pytest.approx(2.5e-3)
    assert found.forwards_per_request == pytest.approx(5)


def test_an_encoder_makes_no_tokens_and_beams_end_as_one_text(tmp_path: Path) -> None:
    script = Script(tmp_path)
    for _ in range(8):
        script.mark(end(Kind.REQUEST)).wait(0.01).size(2, 20).span(Kind.EVALUATE, 6)
        for _ in range(4):
            script.wait(1).size(6, 6).span(Kind.EVALUATE, 3, slot=1)
        script.wait(3.99)
    timeline = script.timeline()
    found = inference(timeline, REQUEST, steady_windows(timeline, REQUEST))
    step = observe_rank(timeline, REQUEST, None, steady_windows(timeline, REQUEST)).step
    assert found is not None
    assert found.first_token is not None
    assert step is not None
    assert found.forwards_per_request == pytest.approx(4)
    assert found.first_token.p50_s == pytest.approx(10e-3), "the encoder, and the first call of the decoder"
    assert (step.samples_per_s, step.tokens_per_s) == (pytest.approx(2 / 26e-3), pytest.approx(8 / 26e-3))


def test_texts_that_are_scored_are_no_generation(tmp_path: Path) -> None:
    timeline = generation(tmp_path, tokens=1).timeline()
    anchor = find_anchor(timeline.spans)
    assert anchor == Anchor("forward", 0)
    found = inference(timeline, anchor, steady_windows(timeline, anchor))
    assert found is not None
    assert found.first_token is None


def test_a_first_long_text_is_waited_for_while_the_program_runs(tmp_path: Path) -> None:
    spans = generation(tmp_path, num=2, tokens=50).timeline().spans
    assert find_anchor(spans, under_way=True) is None
    assert find_anchor(spans) == Anchor("forward", 0), "too few requests to time: a token is a step"


def test_a_program_that_trains_has_no_latency(tmp_path: Path) -> None:
    timeline = Script(tmp_path).train(8).timeline()
    anchor = Anchor("optimizer", 0)
    assert inference(timeline, anchor, steady_windows(timeline, anchor)) is None


@pytest.mark.parametrize(
    ("shapes", "begins"),
    [
        ([(2, 9), (2, 1), (2, 1), (2, 12), (2, 1)], [0, 3]),
        ([(1, 1), (1, 2), (1, 3), (1, 3), (1, 3), (1, 1), (1, 2)], [0, 5]),
        ([(4, 30), (4, 12), (4, 30), (4, 30)], [0, 1, 2, 3]),
        ([(2, 9), (2, 1), (3, 1)], [0, 2]),
        ([(1, 5), (1, 1), (1, 2), (1, 1)], [0, 2]),
    ],
    ids=["cache", "whole context", "scored", "another batch", "short prompts"],
)
def test_a_request_begins_where_the_text_is_another(shapes: list[tuple[int, int]], begins: list[int]) -> None:
    requests, marks = watched()
    for at, shape in enumerate(shapes):
        marks.append(at)
        requests.forward(shape, is_text=True)
    assert [marks[at - 1] for at, mark in enumerate(marks) if mark == "begins"] == begins


def test_generate_of_transformers_says_where_a_request_begins() -> None:
    requests, marks = watched()
    for _ in range(2):
        requests.enter()
        for shape in ((1, 1), (1, 1), (1, 8), (1, 1)):  # several at once: candidates of a smaller model
            requests.forward(shape, is_text=True)
        requests.leave()
    assert marks == ["begins", "begins"]


def watched() -> tuple[Requests, list[Any]]:
    """Requests, and where they mark a beginning."""
    marks: list[Any] = []
    probe: Any = SimpleNamespace(
        recorder=SimpleNamespace(mark=lambda _: marks.append("begins")),
        boundary=SimpleNamespace(ended=lambda *_: None),
    )
    return Requests(probe), marks


CACHED = """
import torch
from torch import nn

class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.cell, self.head = nn.Embedding(50, 16), nn.GRU(16, 16, batch_first=True), nn.Linear(16, 50)

    def forward(self, tokens, state=None):
        seen, state = self.cell(self.embed(tokens), state)
        return self.head(seen[:, -1]), state

torch.manual_seed(0)
model = Reader().eval()
with torch.inference_mode():
    while True:
        logits, state = model(torch.randint(0, 50, (2, 7)))
        for _ in range(11):
            logits, state = model(logits.argmax(-1, keepdim=True), state)
"""


@pytest.mark.slow
def test_a_program_that_generates_is_observed(observe: Observe) -> None:
    run = observe(CACHED, "--steps", "30")
    assert run.code == 0, run.err
    assert run.seen["anchor"]["kind"] == "request"
    found = run.seen["inference"]
    assert found["forwards_per_request"] == 12
    assert found["between_tokens"]["p50_s"] < found["latency"]["p50_s"]
    assert "\nfirst token  " in run.out
    assert all(len(line) <= 80 for line in run.out.splitlines())
