"""Which line is named for what is computed again or for nobody, and at what price."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hotloop.diagnose.check.engine import diagnose, ordered
from hotloop.diagnose.lines.embedding_line import embedding_line
from hotloop.diagnose.lines.padding_line import allocating_line, padding_line
from hotloop.diagnose.price.cost import measured_step
from hotloop.model.deep import Deep, Frame, HostSamples, Loading, LoadingPart, Sample
from hotloop.model.finding import Finding, Severity
from hotloop.model.observation import Observation
from hotloop.model.program import OptimizerFacts
from hotloop.model.ratio import Ratio

from .dataflow_cases import (
    CALL,
    CONSTANT,
    DATAFLOW_CASES,
    OTHER,
    REPEATED,
    TABLE,
    TABLE_2,
    TRAINER,
    backward,
    group,
    with_flow,
)
from .observations import FINE, with_phases


def found(observation: Observation, code: str) -> list[Finding]:
    """Return the findings with a code."""
    return [finding for finding in diagnose(observation).findings if finding.code == code]


def test_the_outermost_line_under_which_all_was_there_is_named_with_its_backward() -> None:
    (finding,) = found(REPEATED, "repeated-computation")
    assert (finding.path, finding.line) == ("model.py", 12)
    assert finding.gain is not None
    share = (0.36 + 0.015) * 0.4 + 0.4 * 0.55  # its part of the forward's 40% and of the backward's 55%
    assert finding.gain.ratio == pytest.approx(1 / (1 - share), rel=0.01)


def test_where_the_caller_computes_more_the_innermost_line_is_named() -> None:
    mixed = with_flow(
        group(CALL, TABLE, spent=0.3, first=0.1, repeated=0.2),
        group(CALL, TABLE_2, spent=0.3),
        group(CALL, spent=0.2),
    )
    (finding,) = found(mixed, "repeated-computation")
    assert (finding.path, finding.line) == ("model.py", 30)


def test_a_parametrized_weight_has_an_advice_of_its_own() -> None:
    (finding,) = found(
        with_flow(group(CALL, spent=0.4, repeated=0.3, parametrized=True)), "repeated-computation"
    )
    assert "cached()" in finding.advice


def test_under_a_library_s_trainer_the_library_s_line_is_named() -> None:
    (finding,) = found(with_flow(group(TRAINER, spent=0.95, first=0.3, repeated=0.6)), "repeated-computation")
    assert finding.path == "/lib/site-packages/trainer.py"


def test_what_is_the_same_in_each_step_is_priced_with_what_its_line_allocates() -> None:
    (finding,) = found(CONSTANT, "constant-computed-each-step")
    assert (finding.path, finding.line) == ("model.py", 12)
    assert finding.gain is not None
    assert finding.gain.ratio == pytest.approx(1 / (1 - 0.4 * 0.4), rel=0.01)


def test_passes_are_added_up_at_the_one_that_repeats_most() -> None:
    passes = (backward(40, 0.0), backward(41, 0.1), backward(42, 0.3))
    (finding,) = found(with_flow(backwards=passes), "repeated-backward")
    assert finding.line == 42
    assert finding.gain is not None
    assert finding.gain.ratio == pytest.approx(1 / (1 - 0.55 * 0.4), rel=0.01)


def test_weights_that_gradients_pass_are_frozen_and_what_they_do_not_pass_is_detached() -> None:
    whole = with_flow(group(CALL, spent=0.3, backward=0.4, dropped=0.3))
    half = with_flow(group(CALL, spent=0.3, backward=0.4, dropped=0.14))
    assert "detach" in found(whole, "gradients-dropped")[0].advice
    assert "requires_grad_(False)" in found(half, "gradients-dropped")[0].advice


def test_a_line_with_other_backward_is_not_blamed_as_a_whole() -> None:
    mixed = with_flow(
        group(CALL, TABLE, spent=0.1, backward=0.3, unheld=0.22), group(CALL, OTHER, backward=0.3)
    )
    (finding,) = found(mixed, "gradients-without-optimizer")
    assert (finding.path, finding.line) == ("model.py", 30)


def test_the_constructor_of_an_embedding_is_found_from_its_look_up(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(
        "class Model:\n"
        "    def __init__(self):\n"
        "        self.users = nn.Embedding(10, 2)\n"
        "        self.items = nn.Embedding(20, 2)\n"
        "    def forward(self, item):\n"
        "        return (self.scale(item) * self.items(item)).sum()\n"
    )
    assert embedding_line(str(path), 6) == 4
    assert embedding_line(str(path), 2) is None


def test_where_a_batch_gets_its_width(tmp_path: Path) -> None:
    path = tmp_path / "data.py"
    path.write_text(
        "def collate(rows):\n"
        "    width = 64\n"
        "    batch = torch.full((len(rows), width), 0)\n"
        "    return batch\n"
        "def encode(text):\n"
        '    return tokenizer(text, truncation=True, padding="max_length")\n'
    )
    assert allocating_line(str(path), 1) == 3
    assert padding_line(str(path)) == (str(path), 6)
    assert padding_line(None) is None


def test_what_is_slow_stands_before_workers_for_it() -> None:
    def finding(code: str, ratio: float) -> Finding:
        return Finding(
            code=code,
            title="",
            severity=Severity.WARNING,
            evidence="",
            advice="",
            gain=Ratio(ratio, 1.0, 9.0),
        )

    codes = [
        one.code
        for one in ordered(
            [
                finding("loader-in-training-process", 2.0),
                finding("slow-dataset-line", 1.3),
                finding("repeated-backward", 3.0),
                finding("sync-in-step", 1.5),
            ],
            FINE,
        )
    ]
    assert codes == ["repeated-backward", "slow-dataset-line", "loader-in-training-process", "sync-in-step"]


@pytest.mark.parametrize(
    ("rows", "method", "sample_s", "seen"),
    [
        (True, "__getitem__", 1e-5, True),
        (True, "__getitems__", 1e-5, False),
        (True, "__getitem__", 1e-3, False),
        (False, "__getitem__", 1e-5, False),
    ],
)
def test_rows_of_tables_in_memory_are_one_index_of_theirs(
    rows: bool, method: str, sample_s: float, seen: bool
) -> None:
    own = LoadingPart(
        kind="own", name=f"Table.{method}", path=None, line=None, count_per_sample=1.0, time_per_sample_s=1e-6,
        share=0.5,
    )  # fmt: skip
    loading = Loading(
        process="train", num_processes=1, window_s=1.0, num_batches=10, num_samples=10_240, sample_s=sample_s,
        parts=(own,), used_bytes_per_sample=8.0, read_bytes_per_sample=None, reads_per_sample=None, rows_in_memory=rows,
    )  # fmt: skip
    wait = msgspec.structs.replace(with_phases(data=0.6), deep=Deep(loading=loading))
    codes = {one.code for one in diagnose(wait).findings}
    assert ("sample-by-sample-batches" in codes) is seen
    assert ("loader-in-training-process" in codes) is not seen


def test_the_zeroing_of_dense_gradients_is_part_of_their_cost() -> None:
    """Between forward and backward `zero_grad` gives the memory of the last ones back."""
    code = "dense-embedding-gradients"
    alone = DATAFLOW_CASES[code]
    assert alone.deep is not None
    optimizer = OptimizerFacts(
        cls="SGD", num_parameters=2 * 100_000 * 16, fused=None, foreach=None, supports_fused=True
    )
    host = HostSamples(
        num_steps=9,
        window_s=1.0,
        interval_s=0.005,
        lines=(),
        frames=(
            Frame("train.py", 9, "main"),
            Frame("/lib/torch/optim/optimizer.py", 1062, "zero_grad", "torch"),
        ),
        samples=(
            Sample((0,), "train", "backward", spent_s=0.8, num=80),
            Sample((0, 1), "train", "forward", spent_s=0.2, num=20),
        ),
    )
    program = msgspec.structs.replace(alone.program, optimizers=(optimizer,))
    seen = msgspec.structs.replace(
        alone, program=program, deep=msgspec.structs.replace(alone.deep, host=host)
    )
    unsampled = msgspec.structs.replace(alone, program=program)
    (dear,), (cheap,) = found(seen, code), found(unsampled, code)
    assert dear.cost_s is not None
    assert cheap.cost_s is not None
    # The table is half of what is trained: half of the fifth.
    assert dear.cost_s - cheap.cost_s == pytest.approx(0.1 * measured_step(seen).whole_s, rel=0.02)
